"""``ReductionKernel``: a function of elements, whose results are combined along axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from cyrt.cupy_compat.elementwise import CallPlan, UserKernel
from cyrt.cupy_compat.operands import OperandLayout, broadcast_layout, broadcast_shape
from cyrt.cupy_compat.parameters import CPP
from cyrt.cupy_compat.source import Argument, indexer_declaration, indexer_parameters, prelude
from cyrt.dtypes import DTYPES, DType
from cyrt.kernels import Kernel
from cyrt.ndarray import Array
from cyrt.ops.creation import empty
from cyrt.runtime.device import Device

_BLOCK = 256
_MOST_BLOCKS = 2**31 - 1
# A thread combines at least this many elements before a result is divided among blocks.
_ROWS_OF_THREAD = 16
_WHOLE, _PARTIAL, _FINAL = "whole", "partial", "final"


class ReductionKernel(UserKernel):
    """A function of elements, whose results are combined along axes.

    Parameters
    ----------
    in_params, out_params : str
        Parameters, as for :class:`ElementwiseKernel`. With a ``raw`` input, the axes that are
        reduced must be the first ones.
    map_expr : str
        The expression of an element's contribution, in terms of the inputs. In it, ``_j`` is the
        element's number, counted with the reduced axes first; ``_J`` is its number among the
        elements of its result; ``_i`` is the number of its result. ``_in_ind.get()`` is an index of
        a ``raw`` input.
    reduce_expr : str
        The expression that combines ``a`` and ``b``; the order is not defined.
    post_map_expr : str
        The statement that computes the outputs from the combined ``a``.
    identity : str
        The value with which the reduction begins. None and ``""`` stand for ``reduce_type()``; a
        reduction of no elements is an error then.
    name : str
        The kernel's name.
    reduce_type : str, optional
        The C++ type of ``a`` and ``b``; default: that of the first output.
    reduce_dims : bool
        Whether neighbouring axes are treated as one axis if the memory allows it.
    preamble : str
        Code that is placed before the kernel.
    options : sequence of str
        Options of NVRTC.

    Raises
    ------
    ValueError
        The name or a parameter does not have the form that C++ or this class requires.
    """

    __module__ = "cyrt.cupy_compat"

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: object,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: Sequence[str] = (),
    ) -> None:
        super().__init__(in_params, out_params, name, reduce_dims, preamble, options)
        if not self.out_params:
            raise ValueError(f"{name}: a reduction has an output")
        self.map_expr, self.reduce_expr = map_expr, reduce_expr
        self.post_map_expr = post_map_expr
        self.identity = "" if identity is None else str(identity)
        self.reduce_type = self.out_params[0].cpp if reduce_type is None else reduce_type

    def __call__(
        self,
        *args: Any,
        out: Any = None,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        stream: Any = None,
    ) -> Array:
        """Run the reduction.

        Parameters
        ----------
        *args
            Arrays, or numbers, which are converted as in C. Outputs come last; if they are absent,
            they are allocated.
        out : Array or tuple of Array, optional
            The output, or all outputs of a kernel that has several.
        axis : int or sequence of int, optional
            The axes to reduce; default: all.
        keepdims : bool
            Whether reduced axes are kept, with one element.
        stream : Stream, optional
            Default: the current one.

        Returns
        -------
        Array
            The first output.

        Raises
        ------
        TypeError, ValueError
            An argument has a wrong type or shape (the message names it), or there are no elements
            to reduce and there is no identity.
        NotImplementedError
            There is a ``raw`` input, and the reduced axes are not the first ones.
        """
        if out is not None:
            if len(args) == self.nargs:
                raise ValueError(
                    f"{self.name}: cannot specify 'out' as both a positional and keyword argument"
                )
            args = (*args, *(out if isinstance(out, tuple) else (out,)))
        if isinstance(axis, Sequence):
            axis = tuple(axis)
        first: Array = self._run(args, (axis, bool(keepdims)), stream)[0]
        return first

    def _plan(self, values: list[Any], *how: Any) -> CallPlan:
        axis, keepdims = how
        shape = self._shape(values)
        types = self._types(values)
        reduced, kept = self._axes(axis, len(shape), values)
        result = tuple(
            [1 if i in reduced else count for i, count in enumerate(shape)]
            if keepdims
            else [shape[i] for i in kept]
        )
        allocated, numbers = self._complete(values, types, result)
        if 0 in result:
            return CallPlan(allocated, numbers, None)
        if 0 in shape and not self.identity:
            raise ValueError(
                f"zero-size array to reduction operation {self.name} which has no identity"
            )
        launch = self._bind(values, types, shape, reduced, kept, result)
        return CallPlan(allocated, numbers, launch)

    def _shape(self, values: Sequence[Any]) -> tuple[int, ...]:
        given = [
            (parameter.name, value.shape)
            for parameter, value in zip(self.in_params, values, strict=False)
            if isinstance(value, Array) and not parameter.raw
        ]
        if not given:
            raise ValueError(f"Loop size is undecided. {self.name} has no input that is not raw")
        names, shapes = zip(*given, strict=True)
        return broadcast_shape(self.name, names, shapes)

    def _axes(
        self, axis: int | Sequence[int] | None, ndim: int, values: Sequence[Any]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The axes that are reduced, and the others."""
        if axis is None:
            reduced = tuple(range(ndim))
        else:
            given = tuple(axis) if isinstance(axis, Sequence) else (axis,)
            for each in given:
                if not -ndim <= each < ndim:
                    raise np.exceptions.AxisError(each, ndim)
            reduced = tuple(sorted(each % ndim for each in given))
            if len(set(reduced)) < len(reduced):
                raise ValueError(f"{self.name}: duplicate value in 'axis': {axis}")
        kept = tuple(i for i in range(ndim) if i not in reduced)
        raw = [parameter.name for parameter in self.in_params if parameter.raw]
        if raw:
            if reduced != tuple(range(len(reduced))):
                raise NotImplementedError(
                    f"{self.name}: argument {raw[0]} is raw, so that the axes to be reduced are "
                    f"the first ones, got axis={axis}"
                )
        elif self.nin == 1:
            # The order of elements is free, and this one joins axes and loads neighbours together.
            steps = values[0].strides
            reduced = tuple(sorted(reduced, key=lambda i: -abs(steps[i])))
        return reduced, kept

    def _bind(
        self,
        values: list[Any],
        types: dict[str, DType],
        shape: tuple[int, ...],
        reduced: tuple[int, ...],
        kept: tuple[int, ...],
        result: tuple[int, ...],
    ) -> Callable[[list[Any]], None]:
        """Return a function that launches one kernel, or two if rows are divided among blocks."""
        order = reduced + kept
        rows, outs = prod(shape[i] for i in reduced), prod(result)
        layouts: dict[int, OperandLayout] = {}
        groups: dict[bool, list[int]] = {True: [], False: []}
        for i, (parameter, value) in enumerate(zip(self.params, values, strict=True)):
            if isinstance(value, Array):
                layouts[i] = OperandLayout(value.shape, value.strides)
                if not parameter.raw:
                    groups[i < self.nin].append(i)
        permuted = tuple(shape[i] for i in order)
        inputs = []
        for i in groups[True]:
            steps = broadcast_layout(values[i], shape).strides
            inputs.append(OperandLayout(permuted, tuple(steps[axis] for axis in order)))
        # The elements of a result are neighbours, or those of neighbouring results are.
        across = bool(kept) and self._is_across(inputs, len(reduced))
        indexers = []
        for group, given, full in (
            (groups[True], inputs, permuted),
            (groups[False], [layouts[i] for i in groups[False]], result),
        ):
            found, sizes = self._merge(given, full)
            layouts.update(zip(group, found, strict=True))
            indexers.append(sizes)
        arguments, numbers, small = self._describe(types, layouts, permuted)
        block, stride = _block(rows, outs, across)
        grid = min((outs + stride - 1) // stride, _MOST_BLOCKS)
        partial = self._partial_type(types)
        splits = 1
        if partial is not None:
            free = 2 * Device.current().multiprocessors // grid
            splits = min(rows * stride // (block * _ROWS_OF_THREAD), free, 65535)
        numbers = [*indexers[0], *indexers[1], *numbers]
        dims = len(indexers[0]), len(indexers[1])
        if partial is None or splits < 2:
            whole = self._stage(_WHOLE, arguments, types, dims, small, None)[grid, block]
            numbers += [rows, stride]
            return lambda given: whole(*given, *numbers)
        first = self._stage(_PARTIAL, arguments, types, dims, small, partial)
        last = self._stage(_FINAL, arguments, types, dims, small, partial)
        launches = first[(grid, splits), block], last[grid, block]

        def launch(given: list[Any]) -> None:
            joined = empty((splits, outs), dtype=partial)
            launches[0](*given, joined, *numbers, rows, stride)
            launches[1](*given, joined, *numbers, splits, stride)

        return launch

    @staticmethod
    def _is_across(inputs: Sequence[OperandLayout], reduced: int) -> bool:
        for each in inputs:
            steps = [
                (abs(step), axis >= reduced)
                for axis, (count, step) in enumerate(zip(*each, strict=True))
                if count > 1 and step
            ]
            if steps:
                return min(steps)[1]
        return False

    def _partial_type(self, types: Mapping[str, DType]) -> DType | None:
        """The element type of the values that are combined; None if the preamble defines it."""
        if self.reduce_type in types:
            return types[self.reduce_type]
        for each in DTYPES:
            if self.reduce_type in (CPP[each.name], each.name):
                return each
        return None

    def _stage(
        self,
        stage: str,
        arguments: tuple[Argument, ...],
        types: Mapping[str, DType],
        dims: tuple[int, int],
        small: bool,
        partial: DType | None,
    ) -> Kernel:
        key = stage, arguments, dims
        kernel: Kernel | None = self._kernels.get(key)
        if kernel is None:
            text = self._text(stage, arguments, types, dims, small, partial)
            made = self._compile(text, arguments, self.name)
            kernel = self._kernels.setdefault(key, made)
        return kernel

    def _text(
        self,
        stage: str,
        arguments: Sequence[Argument],
        types: Mapping[str, DType],
        dims: tuple[int, int],
        small: bool,
        partial: DType | None,
    ) -> str:
        parameters = [each.pointer for each in arguments]
        if partial is not None:
            const = "const " if stage == _FINAL else ""
            parameters.append(f"{const}{CPP[partial.name]}* _partial")
        parameters += indexer_parameters("_in_ind", dims[0], small)
        parameters += indexer_parameters("_out_ind", dims[1], small)
        for each in arguments:
            parameters += each.numbers
        parameters += [f"{'int' if small else 'long long'} _rows", "int _block_stride"]
        inputs, outputs = arguments[: self.nin], arguments[self.nin :]
        if stage == _FINAL:
            load = ["const _type_reduce _a = _partial[_j];"]
        else:
            load = [
                "_in_ind.set(_j);",
                *(each.element("_in_ind", "_j", copy=True) for each in inputs),
                f"const _type_reduce _a = static_cast<_type_reduce>({self.map_expr});",
            ]
        if stage == _PARTIAL:
            store = ["_partial[blockIdx.y * _out_ind.size() + _i] = _sdata[_tid];"]
        else:
            store = [
                "_out_ind.set(_i);",
                *(each.element("_out_ind", "_i") for each in outputs),
                "[[maybe_unused]] _type_reduce& a = _sdata[_tid];",
                self.post_map_expr + ";",
            ]
        texts = self.preamble + self.map_expr + self.reduce_expr + self.post_map_expr
        lines = [
            prelude(types, arguments, texts + self.reduce_type),
            f"typedef {'int' if small else 'long long'} IndexT;",
            self.preamble,
            f"\ntypedef {_cpp(self.reduce_type)} _type_reduce;",
            f'extern "C" __global__ void {self.name}({", ".join(parameters)}) {{',
            indexer_declaration("_in_ind", dims[0], small),
            indexer_declaration("_out_ind", dims[1], small),
            *(each.declaration for each in arguments),
            f"__shared__ alignas(16) char _shared[{_BLOCK} * sizeof(_type_reduce)];",
            "_type_reduce* _sdata = reinterpret_cast<_type_reduce*>(_shared);",
            "const auto _reduce = [&](_type_reduce a, _type_reduce b) -> _type_reduce {",
            f"return static_cast<_type_reduce>({self.reduce_expr});",
            "};",
            "const int _tid = threadIdx.x, _step = blockDim.x / _block_stride;",
            "for (ptrdiff_t _base = static_cast<ptrdiff_t>(blockIdx.x) * _block_stride;",
            "_base < _out_ind.size();",
            "_base += static_cast<ptrdiff_t>(gridDim.x) * _block_stride) {",
            "const ptrdiff_t _i = _base + _tid % _block_stride;",
            f"_type_reduce _s = _type_reduce({self.identity});",
            "if (_i < _out_ind.size())",
            "for (ptrdiff_t _row = static_cast<ptrdiff_t>(blockIdx.y) * _step "
            "+ _tid / _block_stride;",
            "_row < _rows; _row += static_cast<ptrdiff_t>(gridDim.y) * _step) {",
            "[[maybe_unused]] const IndexT _J = static_cast<IndexT>(_row);",
            "const ptrdiff_t _j = _row * _out_ind.size() + _i;",
            *load,
            "_s = _reduce(_s, _a);",
            "}",
            "_sdata[_tid] = _s;",
            "__syncthreads();",
            "for (int _half = blockDim.x / 2; _half >= _block_stride; _half /= 2) {",
            "if (_tid < _half) _sdata[_tid] = _reduce(_sdata[_tid], _sdata[_tid + _half]);",
            "__syncthreads();",
            "}",
            "if (_tid < _block_stride && _i < _out_ind.size()) {",
            *store,
            "}",
            "__syncthreads();",
            "}\n}",
        ]
        return "\n".join(each for each in lines if each) + "\n"


def _cpp(name: str) -> str:
    """The C++ name of a type that may be given by NumPy's."""
    return CPP.get(name, name)


def _power(n: int) -> int:
    """The least power of two that is at least n."""
    return 1 << max(n - 1, 0).bit_length()


def _block(rows: int, outs: int, across: bool) -> tuple[int, int]:
    """Return the threads of a block, and how many results it computes; powers of two."""
    block = min(_BLOCK, max(32, _power(rows) * _power(outs)))
    stride = block // min(block, _power(rows))
    if across:
        stride = max(stride, min(32, _power(outs), block))
    return block, stride
