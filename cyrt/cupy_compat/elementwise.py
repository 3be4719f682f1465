"""``ElementwiseKernel``: an operation that runs once for each element of its arguments."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from cyrt.cupy_compat import device_code
from cyrt.cupy_compat.operands import (
    OperandLayout,
    broadcast_layout,
    broadcast_shape,
    convert,
    is_small,
    merge_axes,
    operand,
    split,
)
from cyrt.cupy_compat.parameters import UserParameter, check_name, parse, resolve
from cyrt.cupy_compat.source import Argument, indexer_declaration, indexer_parameters, prelude
from cyrt.dtypes import DType
from cyrt.kernels import Kernel
from cyrt.kernels.kernel import Launch
from cyrt.ndarray import Array
from cyrt.ops.creation import empty
from cyrt.runtime.stream import stream as as_stream

_MOST_PLANS = 1024
_MOST_BLOCKS = 2**31 - 1


class CallPlan(NamedTuple):
    """The steps of a call with arguments of certain types and layouts.

    Attributes
    ----------
    allocated : list
        Shape and element type of each output that is not passed.
    numbers : list
        For each argument the element type to which a number is converted; None for arrays.
    launch : callable or None
        Launches the kernels, given their first arguments; None if there is nothing to do.
    """

    allocated: list[tuple[tuple[int, ...], DType]]
    numbers: list[DType | None]
    launch: Callable[[list[Any]], None] | None


class UserKernel(ABC):
    """The base of elementwise kernels and reductions, which keeps the compiled kernels."""

    name: str
    in_params: tuple[UserParameter, ...]
    out_params: tuple[UserParameter, ...]
    _cached_codes: dict[tuple[str, ...], str]

    def __init__(
        self,
        in_params: str,
        out_params: str,
        name: str,
        reduce_dims: bool,
        preamble: str,
        options: Sequence[str],
    ) -> None:
        self.name = self.__name__ = check_name(name)
        self.in_params = parse(in_params, const=True)
        self.out_params = parse(out_params, const=False)
        self.params = self.in_params + self.out_params
        self.nin, self.nout = len(self.in_params), len(self.out_params)
        self.nargs = self.nin + self.nout
        names = [each.name for each in self.params]
        if "i" in names:
            raise ValueError("Can not use 'i' as a parameter name")
        for each in names:
            if names.count(each) > 1:
                raise ValueError(f"{name}: two parameters have the name {each!r}")
        if isinstance(options, str):
            raise TypeError(f"options: expected a sequence of str, got the str {options!r}")
        self.reduce_dims = bool(reduce_dims)
        self.preamble = preamble
        self.options = tuple(options)
        self._cached_codes = {}
        self._kernels: dict[Any, Any] = {}
        self._plans: dict[Any, CallPlan] = {}

    @property
    def cached_codes(self) -> dict[tuple[str, ...], str]:
        """The CUDA C++ of each kernel that was compiled so far, by the types of its arrays."""
        if not self._cached_codes:
            warnings.warn(f"{self.name}: nothing is compiled before the first call", stacklevel=2)
        return dict(self._cached_codes)

    @property
    def cached_code(self) -> str:
        """The CUDA C++ of the kernel that was compiled first."""
        if len(self._cached_codes) > 1:
            warnings.warn(
                f"{self.name}: compiled for several types; see cached_codes", stacklevel=2
            )
        if not self._cached_codes:
            raise RuntimeError(f"{self.name}: nothing is compiled before the first call")
        return next(iter(self._cached_codes.values()))

    def _run(self, args: Sequence[Any], how: tuple[Any, ...], stream: Any) -> list[Any]:
        """Run the kernel; return the outputs.

        The steps of a call are determined once for arguments with the same types and layouts and
        for the same keywords, `how`.
        """
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}: it takes {self.nin}, or "
                f"{self.nargs} with its outputs, got {len(args)}"
            )
        values = [
            value if type(value) is Array else self._operand(i, value)
            for i, value in enumerate(args)
        ]
        key = (
            how,
            *[
                (value.dtype.code, value.shape, value.strides)
                if type(value) is Array
                else type(value)
                for value in values
            ],
        )
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan([*values, *[None] * (self.nargs - len(values))], *how)
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        if stream is None:
            return self._carry_out(plan, values)
        with as_stream(stream):
            return self._carry_out(plan, values)

    def _carry_out(self, plan: CallPlan, values: list[Any]) -> list[Any]:
        values += [empty(shape, dtype=dtype) for shape, dtype in plan.allocated]
        if plan.launch is not None:
            given: list[Any] = []
            for value, dtype in zip(values, plan.numbers, strict=True):
                if dtype is None:
                    given.append(value)
                else:
                    given += convert(value, dtype)
            plan.launch(given)
        return values[self.nin :]

    @abstractmethod
    def _plan(self, values: list[Any], *how: Any) -> CallPlan:
        """Return the steps of a call with these arguments."""

    def _operand(self, i: int, value: Any) -> Any:
        return operand(self.name, self.params[i], value, output=i >= self.nin)

    def _types(self, values: Sequence[Any]) -> dict[str, DType]:
        arrays, numbers = split(self.params, values)
        return resolve(self.name, self.params, arrays, numbers, self.nout)

    def _complete(
        self, values: list[Any], types: Mapping[str, DType], shape: tuple[int, ...]
    ) -> tuple[list[tuple[tuple[int, ...], DType]], list[DType | None]]:
        """Allocate the outputs that are not passed, so that a kernel can be chosen; check the
        others.

        Return what a plan allocates, and the element types to which it converts numbers.
        """
        allocated = []
        for i, parameter in enumerate(self.out_params, self.nin):
            if values[i] is None:
                allocated.append((shape, parameter.dtype(types)))
                values[i] = empty(shape, dtype=parameter.dtype(types))
            elif not parameter.raw and values[i].shape != shape:
                raise ValueError(
                    f"{self.name}: Out shape is mismatched: argument {parameter.name}: expected "
                    f"{shape}, got {values[i].shape}"
                )
        numbers = [
            None if isinstance(value, Array) else parameter.dtype(types)
            for parameter, value in zip(self.params, values, strict=True)
        ]
        return allocated, numbers

    def _merge(
        self, layouts: list[OperandLayout], shape: tuple[int, ...]
    ) -> tuple[list[OperandLayout], tuple[int, ...]]:
        """The layouts, of joined axes unless the kernel keeps them, and their common shape."""
        return merge_axes(layouts, shape) if self.reduce_dims or not shape else (layouts, shape)

    def _describe(
        self,
        types: Mapping[str, DType],
        layouts: Mapping[int, OperandLayout],
        shape: tuple[int, ...],
    ) -> tuple[tuple[Argument, ...], list[int], bool]:
        """The arguments as the code takes them, given the layouts of arrays by their places.

        Also return the numbers of these layouts, and whether 32 bits hold all that is computed.
        """
        small = is_small(shape, list(layouts.values()))
        arguments, numbers = [], []
        for i, parameter in enumerate(self.params):
            dtype, layout = parameter.dtype(types), layouts.get(i)
            ndim = -1 if layout is None else len(layout.shape)
            contiguous = layout is not None and layout.contiguous(dtype.itemsize)
            arguments.append(Argument(parameter, dtype, ndim, contiguous, small))
            if layout is not None:
                numbers += [*layout.shape, *layout.strides]
        return tuple(arguments), numbers, small

    def _compile(self, text: str, arguments: Sequence[Argument], name: str) -> Kernel:
        types = tuple(each.dtype.name for each in arguments if each.ndim >= 0)
        self._cached_codes.setdefault(types, text)
        return Kernel(text, name, options=self.options, headers=device_code.HEADERS, strided=True)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class ElementwiseKernel(UserKernel):
    """An operation in CUDA C++ that runs once for each element of its arguments.

    Parameters
    ----------
    in_params, out_params : str
        Parameters, separated by commas: a type and a name, such as ``"T x, raw float32 y"``. A type
        that is a single letter is a placeholder for the types of the arguments. A ``raw`` array is
        not broadcast, and the code indexes it: ``y[i]`` in C order, or ``y[index]`` with an array
        that has an index for each axis; it has ``size()``, ``shape()``, ``strides()`` (in bytes)
        and ``ndim``. Inputs are const.
    operation : str
        The code for one element. In it, the name of a parameter stands for the parameter's element,
        ``i`` for the number of the element, and ``n`` and ``_ind.size()`` for the number of
        elements.
    name : str
        The kernel's name.
    reduce_dims : bool
        Whether neighbouring axes are treated as one axis if the memory allows it.
    preamble : str
        Code that is placed before the kernel.
    no_return : bool
        Whether a call returns None.
    return_tuple : bool
        Whether a call returns a tuple even for one output.
    options : sequence of str
        Options of NVRTC.
    loop_prep, after_loop : str
        Code that each thread executes before its first element and after its last one.

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
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        *,
        options: Sequence[str] = (),
        loop_prep: str = "",
        after_loop: str = "",
    ) -> None:
        super().__init__(in_params, out_params, name, reduce_dims, preamble, options)
        self.operation = operation
        self.no_return = bool(no_return)
        self.return_tuple = bool(return_tuple)
        self.loop_prep, self.after_loop = loop_prep, after_loop

    def __call__(
        self, *args: Any, size: int | None = None, block_size: int = 128, stream: Any = None
    ) -> Any:
        """Run the operation.

        Parameters
        ----------
        *args
            Arrays, or numbers, which are converted as in C. The outputs come last; if they are
            absent, they are allocated.
        size : int, optional
            The number of elements. It is required if every array is raw, and refused otherwise.
        block_size : int
            The number of threads of a block.
        stream : Stream, optional
            Default: the current one.

        Returns
        -------
        Array, tuple of Array, or None
            The output. If there are several outputs or none, or with `return_tuple`, a tuple.

        Raises
        ------
        TypeError, ValueError
            An argument has a wrong type or shape (the message names it); `size` is missing, or is
            given although there are arrays that are not raw.
        """
        if block_size <= 0:
            raise ValueError(f"block_size must be greater than zero, got {block_size}")
        # CuPy's programs pass -1 for none.
        outputs = self._run(args, (None if size == -1 else size, block_size), stream)
        if self.no_return:
            return None
        return outputs[0] if self.nout == 1 and not self.return_tuple else tuple(outputs)

    def _plan(self, values: list[Any], *how: Any) -> CallPlan:
        size, block = how
        shape = self._shape(values, size)
        types = self._types(values)
        for parameter, value in zip(self.out_params, values[self.nin :], strict=True):
            if value is None and parameter.raw and size is None:
                raise ValueError(
                    f"{self.name}: Output array size is Undecided: argument {parameter.name} "
                    "is raw; pass it, or size="
                )
        allocated, numbers = self._complete(values, types, shape)
        if 0 in shape:
            return CallPlan(allocated, numbers, None)
        bound, follow = self._bind(values, types, shape, int(block))
        return CallPlan(allocated, numbers, lambda given: bound(*given, *follow))

    def _shape(self, values: Sequence[Any], size: int | None) -> tuple[int, ...]:
        looped = [
            (parameter.name, value.shape)
            for parameter, value in zip(self.params, values, strict=True)
            if isinstance(value, Array) and not parameter.raw
        ]
        if size is not None:
            if looped:
                raise ValueError(
                    "Specified 'size' can be used only if all of the arrays are 'raw', and "
                    f"{looped[0][0]} of {self.name} is not"
                )
            if size < 0:
                raise ValueError(f"{self.name}: size: expected at least 0, got {size}")
            return (int(size),)
        if not looped:
            raise ValueError(
                f"Loop size is undecided. {self.name} has no array that is not raw: pass size="
            )
        names, shapes = zip(*looped, strict=True)
        return broadcast_shape(self.name, names, shapes)

    def _bind(
        self, values: list[Any], types: dict[str, DType], shape: tuple[int, ...], block: int
    ) -> tuple[Launch, list[int]]:
        """The launch, and what follows the arguments: the shape, and each array's layout."""
        looped = [
            i
            for i, (parameter, value) in enumerate(zip(self.params, values, strict=True))
            if isinstance(value, Array) and not parameter.raw
        ]
        layouts = {
            i: OperandLayout(value.shape, value.strides)
            for i, value in enumerate(values)
            if isinstance(value, Array)
        }
        spread = [broadcast_layout(values[i], shape) for i in looped]
        spread, sizes = self._merge(spread, shape)
        layouts.update(zip(looped, spread, strict=True))
        arguments, numbers, small = self._describe(types, layouts, shape)
        ndim = len(sizes)
        key = arguments, ndim, small
        kernel = self._kernels.get(key)
        if kernel is None:
            text = self._text(arguments, types, ndim, small)
            kernel = self._kernels.setdefault(key, self._compile(text, arguments, self.name))
        grid = min((prod(shape) + block - 1) // block, _MOST_BLOCKS)
        return kernel[grid, block], [*sizes, *numbers]

    def _text(
        self, arguments: Sequence[Argument], types: Mapping[str, DType], ndim: int, small: bool
    ) -> str:
        parameters = [each.pointer for each in arguments] + indexer_parameters("_ind", ndim, small)
        for each in arguments:
            parameters += each.numbers
        texts = self.preamble + self.operation + self.loop_prep + self.after_loop
        names = {each.parameter.name for each in arguments}
        lines = [
            prelude(types, arguments, texts),
            self.preamble,
            f'\nextern "C" __global__ void {self.name}({", ".join(parameters)}) {{',
            indexer_declaration("_ind", ndim, small),
            "" if "n" in names else "[[maybe_unused]] const ptrdiff_t n = _ind.size();",
            *(each.declaration for each in arguments),
            "{",
            self.loop_prep + ";",
            "for (ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x; "
            "i < _ind.size(); i += static_cast<ptrdiff_t>(gridDim.x) * blockDim.x) {",
            "_ind.set(i);",
            *(each.element("_ind", "i") for each in arguments),
            self.operation + ";",
            "}",
            self.after_loop + ";",
            "}\n}",
        ]
        return "\n".join(each for each in lines if each) + "\n"
