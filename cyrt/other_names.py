"""Names of other libraries: the errors of missing attributes name what cyrt has instead."""

from __future__ import annotations

from collections.abc import Callable
from sys import modules
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
    "as_tensor": "cyrt.asarray(values)",
    "async_eval": "nothing, as operations are recorded at once; cyrt.commit() launches them",
    "atomic": "atomicAdd and others, in the source of a cyrt.Kernel",
    "bmm": "a @ b",
    "cat": "cyrt.concat(arrays, axis=0)",
    "chunk": "cyrt.array_split(x, parts, axis)",
    "clamp": "cyrt.clip(x, low, high)",
    "compile": "nothing: operations are recorded, and equal batches are replayed as graphs",
    "cuda": "cyrt.Device, cyrt.Stream, cyrt.Event, cyrt.synchronize()",
    "device": "cyrt.Device",
    "device_count": "cyrt.Device.count()",
    "device_array": "cyrt.empty(shape, dtype)",
    "device_put": "x.to_device(device), cyrt.asarray(values)",
    "devices": "cyrt.Device(i) for i in range(cyrt.Device.count())",
    "eval": "nothing, as operations are recorded at once; cyrt.synchronize() waits",
    "fast": "the functions of cyrt.nn",
    "flatten": "cyrt.ravel(x)",
    "from_numpy": "cyrt.asarray(host)",
    "fuse": "cyrt.cupy_compat.fuse",
    "gather": "cyrt.take_along_axis(x, indices, axis)",
    "genfromtxt": "cyrt.asarray(numpy.genfromtxt(file))",
    "get_default_memory_pool": "cyrt.memory_stats(), cyrt.trim_memory()",
    "grid": "blockIdx, blockDim and threadIdx, in the source of a cyrt.Kernel",
    "hessian": "cyrt.grad of a cyrt.grad",
    "jacobian": "cyrt.vjp(f, x)",
    "jvp": "cyrt.vjp(f, x)",
    "lax": "Python's for and if; cyrt.where(condition, x, y)",
    "lib": "cyrt.sliding_window_view, and NumPy's other functions in cyrt itself",
    "ma": "nothing; functions take where=, and cyrt.where(mask, x, value) chooses",
    "manual_seed": "cyrt.random.seed(0)",
    "masked_fill": "cyrt.where(mask, value, x)",
    "mm": "a @ b",
    "no_grad": _NO_TAPE,
    "permute": _PERMUTE,
    "rand": "cyrt.random.uniform(shape=(3, 4))",
    "randn": "cyrt.random.normal(shape=(3, 4))",
    "random_sample": "cyrt.random.random(size)",
    "scan": "a Python loop; cyrt.cumulative_sum, cyrt.cumulative_prod",
    "scatter": "cyrt.put_along_axis(x, indices, values, axis), cyrt.add.at(x, i, values)",
    "scatter_add": "cyrt.add.at(x, index, value)",
    "set_default_dtype": "dtype=, an argument of functions that make arrays",
    "shared": "__shared__, in the source of a cyrt.Kernel",
    "sparse": "nothing; matrices are dense",
    "special": "cyrt.erf, cyrt.lgamma, cyrt.i0 and others, in cyrt itself",
    "tensor": "cyrt.asarray(values)",
    "tree": "cyrt.tree_map(f, nest)",
    "unsqueeze": _EXPAND,
    "utils": "cyrt.tree_map(f, nest)",
    "vectorize": "functions of whole arrays, or cyrt.cupy_compat.ElementwiseKernel",
    "vmap": "nothing: functions take leading batch dimensions; cyrt.einsum, cyrt.apply_along_axis",
}
ARRAY = {
    "abs": "abs(x), cyrt.abs(x)",
    "add_": "x += y",
    "at": "x[i] = value, cyrt.add.at(x, i, value)",
    "backward": _GRADIENT,
    "block_until_ready": "cyrt.synchronize()",
    "bool": "x.astype('bool')",
    "chunk": "cyrt.array_split(x, parts, axis)",
    "clamp": "x.clip(low, high)",
    "clone": "x.copy()",
    "contiguous": "cyrt.ascontiguousarray(x)",
    "copy_": "x[...] = y",
    "copy_to_host": "x.numpy()",
    "cpu": "x.numpy()",
    "cuda": "x.to_device(device)",
    "data": "x itself; x.ptr, the address",
    "data_ptr": "x.ptr",
    "detach": "cyrt.stop_gradient(x)",
    "dim": "x.ndim",
    "div_": "x /= y",
    "double": "x.astype('float64')",
    "eq": "x == y",
    "exp": "cyrt.exp(x)",
    "expand": "cyrt.broadcast_to(x, shape)",
    "fill_": "x.fill(value)",
    "float": "x.astype('float32')",
    "gather": "cyrt.take_along_axis(x, indices, axis)",
    "grad": _GRADIENT,
    "half": "x.astype('float16')",
    "int": "x.astype('int32')",
    "is_cuda": "x.device",
    "log": "cyrt.log(x)",
    "log_softmax": "cyrt.nn.log_softmax(x)",
    "long": "x.astype('int64')",
    "lt": "x < y",
    "masked_fill": "cyrt.where(mask, value, x)",
    "matmul": "x @ y",
    "mm": "x @ y",
    "mul_": "x *= y",
    "norm": "cyrt.linalg.norm(x)",
    "numel": "x.size",
    "permute": _PERMUTE,
    "pow": "x ** y",
    "register_hook": "cyrt.custom_vjp",
    "relu": "cyrt.nn.relu(x)",
    "requires_grad": _GRADIENT,
    "requires_grad_": _GRADIENT,
    "set": "x[...] = host",
    "sigmoid": "cyrt.nn.sigmoid(x)",
    "softmax": "cyrt.nn.softmax(x)",
    "split": "cyrt.split(x, parts, axis)",
    "sqrt": "cyrt.sqrt(x)",
    "stride": "x.strides, in bytes",
    "sub_": "x -= y",
    "t": "x.T",
    "to": "x.astype(dtype), x.to_device(device)",
    "tofile": "x.numpy().tofile(file)",
    "topk": "cyrt.top_k(x, k)",
    "type": "x.astype(dtype)",
    "unbind": "cyrt.unstack(x)",
    "unsqueeze": _EXPAND,
    "where": "cyrt.where(condition, x, y)",
    "zero_": "x.fill(0)",
}
NN = {
    "Conv2d": "cyrt.nn.conv2d(x, w), with channels last",
    "Dropout": "cyrt.nn.dropout(x, p, key=key)",
    "Embedding": "cyrt.nn.embedding(indices, table)",
    "LayerNorm": "cyrt.nn.layer_norm(x, weight, bias)",
    "Linear": "cyrt.nn.linear(x, w, b); the arrays lie in a dict or dataclass of yours",
    "Module": "a dict or dataclass of arrays, and functions; cyrt.grad takes such nests",
    "Parameter": "an array in a dict or dataclass; cyrt.grad takes such nests",
    "RMSNorm": "cyrt.nn.rms_norm(x, weight)",
    "ReLU": "cyrt.nn.relu(x)",
    "Sequential": "a function that calls others",
    "functional": "the functions of cyrt.nn",
    "init": "cyrt.random.normal, cyrt.random.uniform, times the scale",
    "kl_div": "(p * (cyrt.log(p) - q)).sum(), where q are logarithms",
    "max_pool2d": "cyrt.nn.max_pool(x, kernel_size), with channels last",
    "nll_loss": "cyrt.nn.cross_entropy(logits, targets)",
    "scaled_dot_product_attention": "cyrt.nn.attention(q, k, v)",
    "smooth_l1_loss": "cyrt.nn.huber_loss(x, targets)",
    "swish": "cyrt.nn.silu(x)",
}
OPTIM = {
    "Adam": "cyrt.optim.adam(lr)",
    "AdamW": "cyrt.optim.adamw(lr)",
    "SGD": "cyrt.optim.sgd(lr)",
    "apply_updates": "update of an optimizer, which steps the parameters in place",
    "chain": "cyrt.optim.clip_by_global_norm(max_norm, optimizer)",
    "clip_grad_norm_": "cyrt.optim.clip_by_global_norm(max_norm, optimizer)",
    "cosine_decay": "cyrt.optim.cosine(rate, steps)",
    "lr_scheduler": "cyrt.optim.cosine, linear, exponential and warmup, given as lr",
}
RANDOM = {"PRNGKey": "cyrt.random.key(seed)", "RandomState": "cyrt.random.Generator"}
TABLES = {"cyrt": MODULE, "cyrt.nn": NN, "cyrt.optim": OPTIM, "cyrt.random": RANDOM}


def refusing(module: str) -> Callable[[str], NoReturn]:
    """Return the ``__getattr__`` of a public module."""
    return lambda name: refuse(modules[module], name, (modules["cyrt"],))


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
    # A module has no __all__ yet while it is imported.
    found = [f"{each.__name__}.{name}" for each in places if name in getattr(each, "__all__", ())]
    hint = TABLES.get(module.__name__, {}).get(name) or next(iter(found), None)
    text = "" if hint is None or name.startswith("_") else f"; instead: {hint}"
    raise AttributeError(
        f"module {module.__name__!r} has no attribute {name!r}{text}", name=name, obj=module
    )
