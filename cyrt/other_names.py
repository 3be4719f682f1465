"""Names of other libraries: the errors of missing attributes name what cyrt has instead."""

from __future__ import annotations

from collections.abc import Callable
from sys import modules
from typing import Any, NoReturn

_EXPAND = "cyrt.expand_dims(x, axis)"
_GRADIENT = "cyrt.grad(f), cyrt.value_and_grad(f)"
_LOGITS = "cyrt.nn.binary_cross_entropy(logits, targets, with_logits=True)"
_NO_TAPE = "nothing outside of cyrt.grad; cyrt.stop_gradient(x) inside"
_PERMUTE = "cyrt.permute_dims(x, axes)"

MODULE = {
    "amp": "x.astype('float16') inside of the function that is differentiated",
    "as_tensor": "cyrt.asarray(values)",
    "async_eval": "nothing, as operations are recorded at once; cyrt.commit() launches them",
    "atomic": "atomicAdd and others, in the source of a cyrt.Kernel",
    "autocast": "x.astype('float16') inside of the function that is differentiated",
    "autograd": _GRADIENT,
    "backends": "nothing; cyrt.show_config() prints what is installed",
    "baddbmm": "cyrt.addmm(c, a, b), also of batches",
    "block_until_ready": "cyrt.synchronize()",
    "bmm": "a @ b",
    "cat": "cyrt.concat(arrays, axis=0)",
    "chunk": "cyrt.array_split(x, parts, axis)",
    "clamp": "cyrt.clip(x, low, high)",
    "compile": "nothing, as operations are recorded, and equal batches are replayed as graphs",
    "config": "variables CYRT_..., which cyrt.show_config() prints",
    "cuda": "cyrt.is_available(), cyrt.Device, cyrt.Stream, cyrt.Event, cyrt.synchronize()",
    "custom_function": "cyrt.custom_vjp",
    "custom_jvp": "cyrt.custom_vjp",
    "default_device": "cyrt.Device.current()",
    "device": "cyrt.Device",
    "device_array": "cyrt.empty(shape, dtype)",
    "device_count": "cyrt.Device.count()",
    "device_get": "x.numpy()",
    "device_put": "x.to_device(device), cyrt.asarray(values)",
    "devices": "cyrt.Device(i) for i in range(cyrt.Device.count())",
    "distributed": "nothing; with cyrt.Device(i) chooses one of several devices",
    "double": "cyrt.float64",
    "ElementwiseKernel": "cyrt.cupy_compat.ElementwiseKernel",
    "enable_grad": _NO_TAPE,
    "eval": "nothing, as operations are recorded at once; cyrt.synchronize() waits",
    "event": "cyrt.Event()",
    "fast": "the functions of cyrt.nn",
    "flatten": "cyrt.ravel(x)",
    "float": "cyrt.float32",
    "FloatTensor": "cyrt.asarray(values, dtype='float32')",
    "fori_loop": "a Python loop",
    "from_numpy": "cyrt.asarray(host)",
    "fromDlpack": "cyrt.from_dlpack(x)",
    "fuse": "cyrt.cupy_compat.fuse",
    "gather": "cyrt.take_along_axis(x, indices, axis)",
    "genfromtxt": "cyrt.asarray(numpy.genfromtxt(file))",
    "get_current_device": "cyrt.Device.current()",
    "get_default_dtype": "float32 for numbers of Python; dtype= of functions that make arrays",
    "get_default_memory_pool": "cyrt.memory_stats(), cyrt.trim_memory()",
    "get_default_pinned_memory_pool": "cyrt.PinnedBuffer(nbytes), cyrt.trim_memory()",
    "gpus": "cyrt.Device(i) for i in range(cyrt.Device.count())",
    "grid": "blockIdx, blockDim and threadIdx, in the source of a cyrt.Kernel",
    "hessian": "cyrt.grad of a cyrt.grad",
    "index_select": "cyrt.take(x, indices, axis)",
    "inference_mode": _NO_TAPE,
    "int": "cyrt.int32",
    "is_floating_point": "cyrt.isdtype(x.dtype, 'real floating')",
    "is_tensor": "isinstance(x, cyrt.Array)",
    "jacfwd": "cyrt.vjp(f, x)",
    "jacobian": "cyrt.vjp(f, x)",
    "jacrev": "cyrt.vjp(f, x)",
    "jit": "nothing, as ordinary calls are recorded and launched as graphs; a kernel is CUDA C++, "
    "cyrt.Kernel(code, name)",
    "jvp": "cyrt.vjp(f, x)",
    "lax": "Python's for and if; cyrt.where(condition, x, y)",
    "lib": "cyrt.sliding_window_view, and NumPy's other functions in cyrt itself",
    "local_device_count": "cyrt.Device.count()",
    "local_devices": "cyrt.Device(i) for i in range(cyrt.Device.count())",
    "long": "cyrt.int64",
    "LongTensor": "cyrt.asarray(values, dtype='int64')",
    "ma": "nothing; functions take where=, and cyrt.where(mask, x, value) chooses",
    "make_jaxpr": "cyrt.explain(f, x)",
    "managed_array": "numpy.frombuffer(cyrt.ManagedBuffer(nbytes), dtype)",
    "manual_seed": "cyrt.random.seed(0)",
    "masked_fill": "cyrt.where(mask, value, x)",
    "memoize": "functools.cache",
    "metal": "cyrt.Device()",
    "mm": "a @ b",
    "new_stream": "cyrt.Stream()",
    "no_grad": _NO_TAPE,
    "numel": "x.size",
    "optimizers": "cyrt.optim",
    "permute": _PERMUTE,
    "pinned_array": "numpy.frombuffer(cyrt.PinnedBuffer(nbytes), dtype)",
    "pmap": "with cyrt.Device(i), for each device",
    "rand": "cyrt.random.uniform(shape=(3, 4))",
    "randn": "cyrt.random.normal(shape=(3, 4))",
    "random_sample": "cyrt.random.random(size)",
    "RandomState": "cyrt.random.default_rng(seed)",
    "randperm": "cyrt.random.permutation(n)",
    "RawKernel": "cyrt.Kernel, or cyrt.cupy_compat.RawKernel",
    "RawModule": "cyrt.Module, or cyrt.cupy_compat.RawModule",
    "ReductionKernel": "cyrt.cupy_compat.ReductionKernel",
    "remat": "cyrt.checkpoint(f)",
    "repeat_interleave": "cyrt.repeat(x, repeats, axis)",
    "scan": "a Python loop; cyrt.cumulative_sum, cyrt.cumulative_prod",
    "scatter": "cyrt.put_along_axis(x, indices, values, axis), cyrt.add.at(x, i, values)",
    "scatter_add": "cyrt.add.at(x, index, value)",
    "scipy": "cyrt.linalg, cyrt.fft, and functions of cyrt itself",
    "select_device": "with cyrt.Device(i)",
    "set_default_device": "with cyrt.Device(i), or device= of functions that make arrays",
    "set_default_dtype": "dtype=, an argument of functions that make arrays",
    "set_grad_enabled": _NO_TAPE,
    "shared": "__shared__, in the source of a cyrt.Kernel",
    "sparse": "nothing; matrices are dense",
    "special": "cyrt.erf, cyrt.lgamma, cyrt.i0 and others, in cyrt itself",
    "syncthreads": "__syncthreads(), in the source of a cyrt.Kernel",
    "Tensor": "cyrt.asarray(values); the class is cyrt.Array",
    "tensor": "cyrt.asarray(values)",
    "testing": "numpy.testing, which takes arrays of cyrt",
    "threadIdx": "threadIdx.x, in the source of a cyrt.Kernel",
    "topk": "cyrt.top_k(x, k, axis)",
    "tree": "cyrt.tree_map(f, nest)",
    "tree_flatten": "cyrt.tree_map(f, nest)",
    "tree_util": "cyrt.tree_map(f, nest)",
    "unsqueeze": _EXPAND,
    "utils": "cyrt.tree_map(f, nest); a batch of data is a slice, x[i : i + n]",
    "vectorize": "functions of whole arrays, or cyrt.cupy_compat.ElementwiseKernel",
    "vmap": "nothing, as functions take leading dimensions; cyrt.einsum, cyrt.apply_along_axis",
    "while_loop": "a Python loop",
}
ARRAY = {
    "abs": "abs(x), cyrt.abs(x)",
    "add_": "x += y",
    "asnumpy": "x.numpy()",
    "at": "x[i] = value, cyrt.add.at(x, i, value)",
    "backward": _GRADIENT,
    "bfloat16": "x.astype('bfloat16')",
    "block_until_ready": "cyrt.synchronize()",
    "bool": "x.astype('bool')",
    "chunk": "cyrt.array_split(x, parts, axis)",
    "clamp": "x.clip(low, high)",
    "clone": "x.copy()",
    "contiguous": "cyrt.ascontiguousarray(x)",
    "copy_": "x[...] = y",
    "copy_to_device": "x[...] = host",
    "copy_to_host": "x.numpy()",
    "cpu": "x.numpy()",
    "cuda": "x.to_device(device)",
    "data": "x itself, x[...] = y; x.ptr is the address",
    "data_ptr": "x.ptr",
    "detach": "cyrt.stop_gradient(x)",
    "devices": "x.device",
    "dim": "x.ndim",
    "div_": "x /= y",
    "double": "x.astype('float64')",
    "element_size": "x.itemsize",
    "eq": "x == y",
    "expand": "cyrt.broadcast_to(x, shape)",
    "fill_": "x.fill(value)",
    "flip": "cyrt.flip(x, axis)",
    "float": "x.astype('float32')",
    "gather": "cyrt.take_along_axis(x, indices, axis)",
    "ge": "x >= y",
    "grad": _GRADIENT,
    "grad_fn": _GRADIENT,
    "gt": "x > y",
    "H": "x.mT.conj()",
    "half": "x.astype('float16')",
    "index_add_": "cyrt.add.at(x, index, value)",
    "index_select": "x.take(indices, axis)",
    "int": "x.astype('int32')",
    "is_c_contiguous": "x.flags.c_contiguous",
    "is_contiguous": "x.flags.c_contiguous",
    "is_cuda": "x.device",
    "is_floating_point": "x.dtype.kind == 'f'",
    "is_leaf": _GRADIENT,
    "le": "x <= y",
    "log_softmax": "cyrt.nn.log_softmax(x)",
    "logsumexp": "cyrt.logsumexp(x, axis)",
    "long": "x.astype('int64')",
    "lt": "x < y",
    "masked_fill": "cyrt.where(mask, value, x)",
    "matmul": "x @ y",
    "mm": "x @ y",
    "moveaxis": "cyrt.moveaxis(x, source, destination)",
    "mul": "x * y",
    "mul_": "x *= y",
    "narrow": "x[:, start : start + length]",
    "ndimension": "x.ndim",
    "ne": "x != y",
    "nelement": "x.size",
    "new_ones": "cyrt.ones(shape, dtype=x.dtype, device=x.device)",
    "new_tensor": "cyrt.asarray(values, dtype=x.dtype, device=x.device)",
    "new_zeros": "cyrt.zeros(shape, dtype=x.dtype, device=x.device)",
    "norm": "cyrt.linalg.norm(x)",
    "normal_": "x[...] = cyrt.random.normal(shape=x.shape)",
    "numel": "x.size",
    "outer": "cyrt.outer(x, y)",
    "permute": _PERMUTE,
    "pin_memory": "cyrt.PinnedBuffer(nbytes)",
    "pow": "x ** y",
    "register_hook": "cyrt.custom_vjp",
    "relu": "cyrt.nn.relu(x)",
    "requires_grad": _GRADIENT,
    "requires_grad_": _GRADIENT,
    "retain_grad": _GRADIENT,
    "roll": "cyrt.roll(x, shift, axis)",
    "scatter_add_": "cyrt.add.at(x, index, value)",
    "set": "x[...] = host",
    "sigmoid": "cyrt.nn.sigmoid(x)",
    "softmax": "cyrt.nn.softmax(x)",
    "split": "cyrt.split(x, parts, axis)",
    "stride": "x.strides, in bytes",
    "sub": "x - y",
    "sub_": "x -= y",
    "t": "x.T",
    "tile": "cyrt.tile(x, repeats)",
    "to": "x.astype(dtype), x.to_device(device)",
    "toDlpack": "x itself, which has __dlpack__; cyrt.from_dlpack(x)",
    "tofile": "x.numpy().tofile(file)",
    "topk": "cyrt.top_k(x, k)",
    "tril": "cyrt.tril(x)",
    "triu": "cyrt.triu(x)",
    "type": "x.astype(dtype)",
    "type_as": "x.astype(y.dtype)",
    "unbind": "cyrt.unstack(x)",
    "uniform_": "x[...] = cyrt.random.uniform(shape=x.shape)",
    "unique": "cyrt.unique(x)",
    "unsqueeze": _EXPAND,
    "where": "cyrt.where(condition, x, y)",
    "zero_": "x.fill(0)",
    "zero_grad": "nothing, as each call of cyrt.grad(f) returns new gradients",
}
NN = {
    "adaptive_avg_pool2d": "x.mean(axis=(1, 2)), one value for each channel",
    "avg_pool2d": "cyrt.nn.avg_pool(x, kernel_size), with channels last",
    "AvgPool2d": "cyrt.nn.avg_pool(x, kernel_size), with channels last",
    "BatchNorm1d": "cyrt.nn.batch_norm(x, mean, var, weight, bias), with channels last",
    "BatchNorm2d": "cyrt.nn.batch_norm(x, mean, var, weight, bias), with channels last",
    "BCELoss": "cyrt.nn.binary_cross_entropy(x, targets)",
    "BCEWithLogitsLoss": _LOGITS,
    "binary_cross_entropy_with_logits": _LOGITS,
    "Conv1d": "cyrt.nn.conv1d(x, w), with channels last",
    "Conv2d": "cyrt.nn.conv2d(x, w), with channels last",
    "CrossEntropyLoss": "cyrt.nn.cross_entropy(logits, targets).mean()",
    "Dropout": "cyrt.nn.dropout(x, p, key=key)",
    "Embedding": "cyrt.nn.embedding(indices, table)",
    "Flatten": "x.reshape(len(x), -1)",
    "functional": "the functions of cyrt.nn",
    "gelu_approx": "cyrt.nn.gelu_tanh(x)",
    "GroupNorm": "cyrt.nn.group_norm(x, groups, weight, bias), with channels last",
    "GRU": "a Python loop, with cyrt.nn.linear, cyrt.sigmoid and cyrt.tanh",
    "init": "cyrt.random.normal, cyrt.random.uniform, times the scale",
    "kl_div": "(p * (cyrt.log(p) - q)).sum(), where q are logarithms",
    "L1Loss": "cyrt.nn.l1_loss(x, targets)",
    "LayerNorm": "cyrt.nn.layer_norm(x, weight, bias)",
    "Linear": "cyrt.nn.linear(x, w, b); the arrays lie in a dict or dataclass of yours",
    "losses": "cyrt.nn.cross_entropy, cyrt.nn.mse_loss and others, in cyrt.nn itself",
    "LSTM": "a Python loop, with cyrt.nn.linear, cyrt.sigmoid and cyrt.tanh",
    "max_pool1d": "cyrt.nn.max_pool(x, kernel_size), with channels last",
    "max_pool2d": "cyrt.nn.max_pool(x, kernel_size), with channels last",
    "max_pool3d": "cyrt.nn.max_pool(x, kernel_size), with channels last",
    "MaxPool2d": "cyrt.nn.max_pool(x, kernel_size), with channels last",
    "Module": "a dict or dataclass of arrays, and functions; cyrt.grad takes such nests",
    "MSELoss": "cyrt.nn.mse_loss(x, targets)",
    "MultiHeadAttention": "cyrt.nn.attention(q, k, v)",
    "MultiheadAttention": "cyrt.nn.attention(q, k, v)",
    "nll_loss": "cyrt.nn.cross_entropy(logits, targets)",
    "normalize": "x / cyrt.linalg.vector_norm(x, axis=-1, keepdims=True)",
    "Parameter": "an array in a dict or dataclass; cyrt.grad takes such nests",
    "ReLU": "cyrt.nn.relu(x)",
    "RMSNorm": "cyrt.nn.rms_norm(x, weight)",
    "scaled_dot_product_attention": "cyrt.nn.attention(q, k, v)",
    "Sequential": "a function that calls others",
    "smooth_l1_loss": "cyrt.nn.huber_loss(x, targets)",
    "swish": "cyrt.nn.silu(x)",
    "utils": "cyrt.optim.clip_by_global_norm(max_norm, optimizer)",
}
OPTIM = {
    "Adam": "cyrt.optim.adam(lr)",
    "AdamW": "cyrt.optim.adamw(lr)",
    "apply_updates": "update of an optimizer, which steps the parameters in place",
    "chain": "cyrt.optim.clip_by_global_norm(max_norm, optimizer)",
    "clip_grad_norm": "cyrt.optim.clip_by_global_norm(max_norm, optimizer)",
    "clip_grad_norm_": "cyrt.optim.clip_by_global_norm(max_norm, optimizer)",
    "cosine_decay": "cyrt.optim.cosine(rate, steps)",
    "lr_scheduler": "cyrt.optim.cosine, linear, exponential and warmup, given as lr",
    "SGD": "cyrt.optim.sgd(lr)",
}
RANDOM = {"PRNGKey": "cyrt.random.key(seed)", "RandomState": "cyrt.random.Generator"}
TABLES = {"cyrt": MODULE, "cyrt.nn": NN, "cyrt.optim": OPTIM, "cyrt.random": RANDOM}
_LAUNCH = "kernel[grid, block](*args), kernel.for_each(n, *args)"
_NO_CAPTURE = "nothing, as cyrt launches every batch as a graph"
_STEP = "params, state = optimizer.update(grads, state, params)"
# Those of other classes, by the names of the classes.
CLASSES = {
    "Device": {
        "attributes": "device.attribute(name)",
        "id": "device.index",
        "mem_info": "device.memory_info()",
        "set_current": "with device:",
        "synchronize": "cyrt.synchronize()",
        "use": "with device:",
    },
    "Event": {"query": "event.done", "ptr": "event.handle"},
    "Kernel": {
        "compile": "nothing, as a kernel is compiled when it is first used",
        "configure": _LAUNCH,
        "forall": "kernel.for_each(n, *args)",
        "launch": _LAUNCH,
        "max_threads_per_block": "kernel.max_threads",
        "num_regs": "kernel.registers",
        "run": _LAUNCH,
        "shared_size_bytes": "kernel.shared_bytes",
    },
    "Module": {"get_function": "module[name]", "get_kernel": "module[name]"},
    "Optimizer": {
        "apply_gradients": _STEP,
        "learning_rate": "lr=, a number or a schedule, when the optimizer is made",
        "load_state_dict": "cyrt.load_checkpoint(file, like=state)",
        "lr": "lr=, a number or a schedule, when the optimizer is made",
        "param_groups": "an optimizer for each group of parameters",
        "state": "state = optimizer.init(params), which update takes and returns",
        "state_dict": "cyrt.save_checkpoint(file, state), with the state that update returns",
        "step": _STEP,
        "zero_grad": "nothing, as each call of cyrt.value_and_grad(f) returns new gradients",
    },
    "Stream": {
        "begin_capture": _NO_CAPTURE,
        "end_capture": _NO_CAPTURE,
        "ptr": "stream.handle",
        "query": "stream.done",
        "record": "event.record(stream)",
        "record_event": "event.record(stream)",
        "use": "with stream:",
        "wait_event": "stream.wait(event)",
        "wait_stream": "stream.wait(stream)",
    },
}


def refusing(module: str) -> Callable[[str], NoReturn]:
    """Return the ``__getattr__`` of a public module."""
    return lambda name: refuse(modules[module], name, (modules["cyrt"],))


class Missing:
    """An attribute that objects of a class do not have: to look it up or to set it is an error,
    which tells what to write."""

    def __init__(self, name: str, instead: str):
        self.__name__ = name
        self.instead = instead
        self.__doc__ = f"There is no such attribute; instead: {instead}"  # for help()

    def __get__(self, instance: Any, kind: Any = None) -> Any:
        # A class that derives from cyrt's may have such an attribute.
        if self.__name__ in getattr(instance, "__dict__", ()):
            return instance.__dict__[self.__name__]
        refuse_attribute(kind, self.__name__, self.instead)

    def __set__(self, instance: Any, value: Any) -> None:
        if not hasattr(instance, "__dict__"):
            refuse_attribute(type(instance), self.__name__, self.instead)
        instance.__dict__[self.__name__] = value


def refuse_attribute(kind: type, name: str, instead: str) -> NoReturn:
    """Raise the error of an attribute that objects of a class do not have."""
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    raise _error(f"{article} {kind.__name__}", name, instead)


def _error(owner: str, name: str, instead: str) -> AttributeError:
    # Without the object, Python does not add that a similar name may have been meant.
    return AttributeError(f"{owner} has no attribute {name!r}; instead: {instead}", name=name)


def refuse(module: Any, name: str, modules: tuple[Any, ...]) -> NoReturn:
    """Raise the error of a name that a module does not have. It tells which of the other `modules`
    has it, or what to write: a class ``ReLU`` of a library is a function ``relu`` here."""
    found = [
        f"{each.__name__}.{there}"
        for there in (name, name.lower())
        for each in (*modules, module)
        # A module has no __all__ yet while it is imported.
        if there in getattr(each, "__all__", ())
    ]
    hint = TABLES.get(module.__name__, {}).get(name) or next(iter(found), None)
    owner = f"module {module.__name__!r}"
    if hint is not None and not name.startswith("_"):
        raise _error(owner, name, hint)
    raise AttributeError(f"{owner} has no attribute {name!r}", name=name, obj=module)
