"""Kernels as operators of PyTorch, for ``torch.compile`` and autograd.

PyTorch is imported when a function is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from cyrt.jit.signature import Parameter, from_declaration
from cyrt.kernels.kernel import Kernel
from cyrt.runtime.device import Device

__all__ = ["custom_op"]


def __dir__() -> list[str]:
    return list(__all__)


_TYPES = {
    "bool": "bool",
    **dict.fromkeys(["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"], "SymInt"),
    **dict.fromkeys(["f16", "bf16", "f32", "f64"], "float"),
    **dict.fromkeys(["c64", "c128"], "complex"),
}


def custom_op(
    kernel: Kernel,
    name: str,
    *,
    grid: Any,
    block: Any,
    computed: Mapping[str, Callable[..., Any]] | None = None,
    backward: Callable[..., Any] | None = None,
    setup_context: Callable[..., Any] | None = None,
) -> Any:
    """Register a kernel as an operator of PyTorch, by ``torch.library.custom_op``.

    The operator takes the kernel's arguments, except those in `computed`, and launches the kernel
    on PyTorch's current stream. It returns the computed tensors: None, one tensor or a tuple.
    Tensors among its arguments that the kernel may write (``T*``, not ``const T*``) are declared as
    mutated. Its fake implementation, which ``torch.compile`` and ``torch.export`` use, makes the
    computed tensors and launches nothing.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    name : str
        The operator's name: ``"library::name"``.
    grid, block : int, tuple of int, or function
        As in ``kernel[grid, block]``. A function is called with the operator's arguments.
    computed : mapping of str to function, optional
        The parameters of the kernel that the operator does not take, each with a function of the
        operator's arguments that returns the parameter's value. For a pointer, which the kernel
        writes, the function makes a tensor of the operator's result, as ``torch.empty_like`` does;
        for a scalar, it returns a number.
    backward, setup_context : function, optional
        The functions that PyTorch's ``register_autograd`` takes: ``backward(ctx, *grads)``, and
        ``setup_context(ctx, inputs, output)``, which saves what `backward` needs. An operator that
        mutates one of its arguments cannot have them.

    Returns
    -------
    torch.library.CustomOpDef
        The operator: a function.

    Raises
    ------
    TypeError
        The kernel has a parameter that PyTorch's operators cannot have, such as a struct.
    ValueError
        `computed` has a name that no parameter has, or the name of a pointer that is only read.
    ImportError
        PyTorch is not installed.
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"custom_op: kernel: expected a Kernel, got {type(kernel).__name__}")
    library = import_module("torch.library")
    made = dict(computed or {})
    parameters = _named(kernel)
    results = [p for p in parameters if p.name in made and p.code == "pointer"]
    _check_computed(kernel, parameters, made)
    taken = [p for p in parameters if p.name not in made]

    def results_of(inputs: tuple[Any, ...]) -> dict[str, Any]:
        return {p.name: made[p.name](*inputs) for p in results}

    def returned(found: dict[str, Any]) -> Any:
        tensors = tuple(found.values())
        return None if not tensors else tensors[0] if len(tensors) == 1 else tensors

    def run(*inputs: Any) -> Any:
        found = results_of(inputs)
        given = dict(zip((p.name for p in taken), inputs, strict=True)) | found
        values = [
            _detached(given[p.name] if p.name in given else made[p.name](*inputs))
            for p in parameters
        ]
        geometry = [each(*inputs) if callable(each) else each for each in (grid, block)]
        _launch(kernel, geometry[0], geometry[1], values)
        return returned(found)

    operator = library.custom_op(
        name,
        run,
        mutates_args=[p.name for p in taken if p.writes],
        schema=_schema(kernel, taken, len(results)),
    )
    operator.register_fake(lambda *inputs: returned(results_of(inputs)))
    if backward is not None:
        operator.register_autograd(backward, setup_context=setup_context)
    return operator


def _named(kernel: Kernel) -> list[Parameter]:
    """Return the kernel's parameters; those that no source names are called ``x0``, ``x1`` ..."""
    found = from_declaration(kernel.signature).parameters
    return [
        Parameter(p.type, p.code, p.size, p.align, p.writes, p.name or f"x{i}")
        for i, p in enumerate(found)
    ]


def _check_computed(kernel: Kernel, parameters: list[Parameter], made: dict[str, Any]) -> None:
    known = {p.name: p for p in parameters}
    for each in made:
        if each not in known:
            raise ValueError(
                f"custom_op: computed: {kernel.name} has no parameter {each!r}\n"
                f"  {kernel.signature}"
            )
        if known[each].code == "pointer" and not known[each].writes:
            raise ValueError(f"custom_op: computed: {kernel.name} does not write {known[each]}")


def _schema(kernel: Kernel, taken: list[Parameter], results: int) -> str:
    """Return the operator's arguments and results in the language of PyTorch's schemas."""
    arguments = []
    for i, p in enumerate(taken):
        kind = "Tensor" if p.code == "pointer" else _TYPES.get(p.code)
        if kind is None:
            raise TypeError(
                f"custom_op: an operator of PyTorch cannot have the parameter {p}\n"
                f"  {kernel.signature}"
            )
        arguments.append(f"{kind}{f'(a{i}!)' if p.writes else ''} {p.name}")
    found = "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})"
    return f"({', '.join(arguments)}) -> {found}"


def _detached(value: Any) -> Any:
    """Return a tensor without its gradient, which the operator computes."""
    return value.detach() if getattr(value, "requires_grad", False) else value


def _launch(kernel: Kernel, grid: Any, block: Any, values: list[Any]) -> None:
    """Launch on the device of the first tensor."""
    index = next((each.device.index for each in values if hasattr(each, "device")), None)
    if index is None:
        kernel[grid, block](*values)
        return
    with Device(index):
        kernel[grid, block](*values)
