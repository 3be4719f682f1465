"""Names of other libraries: what cyrt has instead is told by the errors of attributes."""

from __future__ import annotations

from typing import Any, NoReturn

_EXPAND = "cyrt.expand_dims(x, axis)"
_GRADIENT = "cyrt.grad(f), cyrt.value_and_grad(f)"
_NO_TAPE = "nothing outside of cyrt.grad; cyrt.stop_gradient(x) inside"
_PERMUTE = "cyrt.permute_dims(x, axes)"

MODULE = {
    "ElementwiseKernel": "cyrt.cupy_compat.ElementwiseKernel",
    "RandomState": "cyrt.random.default_rng(seed)",
    "RawKernel": "cyrt.Kernel, or cyrt.cupy_compat.RawKernel",
    "RawModule": "cyrt.Module, or cyrt.cupy_compat.RawModule",
    "ReductionKernel": "cyrt.cupy_compat.ReductionKernel",
    "Tensor": "cyrt.Array",
    "cat": "cyrt.concat(arrays, axis=0)",
    "cuda": "cyrt.Device, cyrt.Stream, cyrt.Event, cyrt.synchronize()",
    "device": "cyrt.Device",
    "eval": "nothing, as operations are recorded at once; cyrt.synchronize() waits",
    "from_numpy": "cyrt.asarray(host)",
    "fuse": "cyrt.cupy_compat.fuse",
    "genfromtxt": "cyrt.asarray(numpy.genfromtxt(file))",
    "get_default_memory_pool": "cyrt.memory_stats(), cyrt.trim_memory()",
    "jacobian": "cyrt.vjp(f, x)",
    "lib": "cyrt.sliding_window_view, and NumPy's other functions in cyrt itself",
    "ma": "nothing; functions take where=, and cyrt.where(mask, x, value) chooses",
    "manual_seed": "cyrt.random.seed(0)",
    "no_grad": _NO_TAPE,
    "permute": _PERMUTE,
    "rand": "cyrt.random.uniform(shape=(3, 4))",
    "randn": "cyrt.random.normal(shape=(3, 4))",
    "random_sample": "cyrt.random.random(size)",
    "scatter_add": "cyrt.add.at(x, index, value)",
    "sparse": "nothing; matrices are dense",
    "special": "cyrt.erf, cyrt.lgamma, cyrt.i0 and others, in cyrt itself",
    "tensor": "cyrt.asarray(values)",
    "unsqueeze": _EXPAND,
    "vectorize": "functions of whole arrays, or cyrt.cupy_compat.ElementwiseKernel",
    "vmap": "nothing: functions take leading batch dimensions; cyrt.einsum, cyrt.apply_along_axis",
}
ARRAY = {
    "add_": "x += y",
    "at": "x[i] = value, cyrt.add.at(x, i, value)",
    "backward": _GRADIENT,
    "block_until_ready": "cyrt.synchronize()",
    "clone": "x.copy()",
    "contiguous": "cyrt.ascontiguousarray(x)",
    "copy_": "x[...] = y",
    "copy_to_host": "x.numpy()",
    "cpu": "x.numpy()",
    "cuda": "x.to_device(device)",
    "data": "x.ptr, the address",
    "detach": "cyrt.stop_gradient(x)",
    "dim": "x.ndim",
    "div_": "x /= y",
    "double": "x.astype('float64')",
    "exp": "cyrt.exp(x)",
    "expand": "cyrt.broadcast_to(x, shape)",
    "fill_": "x.fill(value)",
    "float": "x.astype('float32')",
    "grad": _GRADIENT,
    "half": "x.astype('float16')",
    "log": "cyrt.log(x)",
    "long": "x.astype('int64')",
    "matmul": "x @ y",
    "mul_": "x *= y",
    "numel": "x.size",
    "permute": _PERMUTE,
    "requires_grad": _GRADIENT,
    "set": "x[...] = host",
    "softmax": "cyrt.nn.softmax(x)",
    "sqrt": "cyrt.sqrt(x)",
    "sub_": "x -= y",
    "to": "x.astype(dtype), x.to_device(device)",
    "tofile": "x.numpy().tofile(file)",
    "unsqueeze": _EXPAND,
    "zero_": "x.fill(0)",
}


class Missing:
    """An attribute that an array does not have; looking it up tells what to write."""

    def __init__(self, name: str):
        self.__name__ = name

    def __get__(self, array: Any, kind: Any = None) -> NoReturn:
        name = self.__name__
        raise AttributeError(
            f"an Array has no attribute {name!r}; instead: {ARRAY[name]}", name=name, obj=array
        )


def refuse(module: Any, name: str, places: tuple[Any, ...]) -> NoReturn:
    """Raise the error of a name that a module does not have: it tells which of `places`, other
    modules, has it, or what to write."""
    found = [f"{each.__name__}.{name}" for each in places if name in each.__all__]
    hint = found[0] if found else MODULE.get(name)
    text = "" if hint is None or name.startswith("_") else f"; instead: {hint}"
    raise AttributeError(
        f"module {module.__name__!r} has no attribute {name!r}{text}", name=name, obj=module
    )
