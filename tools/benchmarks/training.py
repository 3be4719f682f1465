"""Steps of training: gradients and an optimizer, written by hand and by each library's own tools.

Each row is the wall time of a step in a long loop, in µs, and the ratio to cyrt's first row, when
what each library compiles is compiled: `CYRT_FUSE=0` measures cyrt without fusion. Every gradient
is compared with a difference quotient of NumPy's in float64 before anything is timed.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from common import Row, Session, main, settle_fusion

import cyrt
from cyrt import nn, optim

STEPS, ROUNDS = 300, 5
RATE = 1e-3
HEADS = 4

Arrays = list[Any]
Step = Callable[[Arrays], Arrays]  # steps parameters, and returns them


class Functions(NamedTuple):
    """A library's functions, as far as the losses call them."""

    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]
    tanh: Callable[[Any], Any]
    sqrt: Callable[[Any], Any]
    maximum: Callable[[Any, float], Any]
    sum: Callable[[Any, int], Any]  # over an axis, which stays
    max: Callable[[Any, int], Any]
    total: Callable[[Any], Any]  # the sum of all elements
    swap: Callable[[Any, int, int], Any]


class Program(NamedTuple):
    """What is trained: the loss of parameters and data, and its gradients by hand if there are."""

    name: str
    optimizer: str
    params: list[np.ndarray]
    data: list[np.ndarray]
    loss: Callable[[Functions, Arrays, Arrays], Any]
    gradients: Callable[[Arrays, Arrays], Arrays] | None


def _functions(of: Any, swap: Callable[[Any, int, int], Any]) -> Functions:
    return Functions(
        of.exp,
        of.log,
        of.tanh,
        of.sqrt,
        of.maximum,
        lambda x, axis: of.sum(x, axis=axis, keepdims=True),
        lambda x, axis: of.max(x, axis=axis, keepdims=True),
        of.sum,
        swap,
    )


# -- the programs ----------------------------------------------------------------------------------


def logistic(f: Functions, params: Arrays, data: Arrays) -> Any:
    (w,), (x, y) = params, data
    z = x @ w
    high = f.maximum(z, 0.0)
    # log(1 + exp(z)) that does not overflow
    return f.total(high + f.log(f.exp(-high) + f.exp(z - high)) - y * z) / x.shape[0]


def logistic_gradients(params: Arrays, data: Arrays) -> Arrays:
    (w,), (x, y) = params, data
    return [x.T @ ((cyrt.sigmoid(x @ w) - y) / x.shape[0])]


def perceptron(f: Functions, params: Arrays, data: Arrays) -> Any:
    x, classes = data
    for i in range(0, len(params), 2):
        x = x @ params[i] + params[i + 1]
        if i + 2 < len(params):
            x = f.maximum(x, 0.0)
    x = x - f.max(x, -1)
    return f.total(classes * (f.log(f.sum(f.exp(x), -1)) - x)) / x.shape[0]


def perceptron_gradients(params: Arrays, data: Arrays) -> Arrays:
    x, classes = data
    inputs = []
    for i in range(0, len(params), 2):
        inputs.append(x)
        x = cyrt.addmm(params[i + 1], x, params[i])
        x = nn.relu(x) if i + 2 < len(params) else x
    g = (nn.softmax(x) - classes) / x.shape[0]
    found: Arrays = []
    for i in reversed(range(0, len(params), 2)):
        found[:0] = inputs[i // 2].T @ g, g.sum(axis=0)
        if i:
            g = nn.relu_vjp(g @ params[i].T, inputs[i // 2])
    return found


def elementwise(f: Functions, params: Arrays, data: Arrays) -> Any:
    (x,), (a, b) = params, data
    for _ in range(4):
        x = f.tanh(x * a + b)
    return f.total(x)


def elementwise_gradients(params: Arrays, data: Arrays) -> Arrays:
    (x,), (a, b) = params, data
    values = []
    for _ in range(4):
        x = cyrt.tanh(x * a + b)
        values.append(x)
    g = (1 - values[-1] * values[-1]) * a
    for y in reversed(values[:-1]):
        g = g * ((1 - y * y) * a)
    return [g]


def _norm(f: Functions, x: Any) -> Any:
    centered = x - f.sum(x, -1) / x.shape[-1]
    return centered / f.sqrt(f.sum(centered * centered, -1) / x.shape[-1] + 1e-5)


def transformer_layer(f: Functions, params: Arrays, data: Arrays) -> Any:
    (x,), (qkv, out, up, down) = data, params
    batch, length, width = x.shape
    y = (_norm(f, x) @ qkv).reshape((batch, length, 3 * HEADS, width // HEADS))
    y = f.swap(y, 1, 2)
    q, k, v = y[:, :HEADS], y[:, HEADS : 2 * HEADS], y[:, 2 * HEADS :]
    scores = (q @ f.swap(k, 2, 3)) / (width // HEADS) ** 0.5
    scores = f.exp(scores - f.max(scores, -1))
    y = (scores / f.sum(scores, -1)) @ v
    x = x + f.swap(y, 1, 2).reshape((batch, length, width)) @ out
    x = x + f.maximum(_norm(f, x) @ up, 0.0) @ down
    return f.total(x * x) / x.shape[0]


def _programs(small: bool) -> Iterator[Program]:
    rng = np.random.default_rng(3)

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    rows, columns = (50, 10) if small else (1000, 100)
    yield Program(
        f"logistic regression {rows} × {columns}, SGD",
        "sgd",
        [normal(columns)],
        [normal(rows, columns), (rng.random(rows) < 0.5).astype(np.float32)],
        logistic,
        logistic_gradients,
    )
    sizes = (16, 24, 24, 10) if small else (64, 256, 256, 10)
    params = []
    for inner, outer in itertools.pairwise(sizes):
        params += [normal(inner, outer, scale=inner**-0.5), normal(outer, scale=0.1)]
    classes = np.eye(10, dtype=np.float32)[rng.integers(0, 10, 64)]
    yield Program(
        f"perceptron 64 × {sizes}, Adam",
        "adam",
        params,
        [normal(64, sizes[0]), classes],
        perceptron,
        perceptron_gradients,
    )
    count = 256 if small else 4096
    yield Program(
        f"12 elementwise operations of {count:,}, SGD",
        "sgd",
        [normal(count)],
        [normal(count), normal(count)],
        elementwise,
        elementwise_gradients,
    )
    batch, length, width = (2, 8, 32) if small else (4, 32, 128)
    yield Program(
        f"transformer layer {batch} × {length} × {width}, SGD",
        "sgd",
        [
            normal(inner * width, outer * width, scale=(inner * width) ** -0.5)
            for inner, outer in ((1, 3), (1, 1), (1, 4), (4, 1))
        ],
        [normal(batch, length, width)],
        transformer_layer,
        None,
    )


# -- libraries -------------------------------------------------------------------------------------


class Contender(NamedTuple):
    """A way to train: `make(program, optimizer, rate)` returns the parameters and their step."""

    name: str
    make: Callable[[Program, str, float], tuple[Arrays, Step]]
    to_host: Callable[[Any], np.ndarray]
    wait: Callable[[Arrays], object]


def _cyrt(name: str, by_hand: bool) -> Contender:
    functions = _functions(cyrt, cyrt.swapaxes)

    def make(program: Program, optimizer: str, rate: float) -> tuple[Arrays, Step]:
        params = [cyrt.asarray(each) for each in program.params]
        data = [cyrt.asarray(each) for each in program.data]
        stepping = getattr(optim, optimizer)(rate)
        state = stepping.init(params)
        find: Callable[[Arrays], Any]
        if by_hand:
            gradients = program.gradients
            assert gradients is not None

            def find(params: Arrays) -> Any:
                return gradients(params, data)
        else:
            find = cyrt.grad(lambda params: program.loss(functions, params, data))

        def step(params: Arrays) -> Arrays:
            stepping.update(find(params), state, params)
            cyrt.commit()
            return params

        return params, step

    return Contender(name, make, lambda x: x.numpy(), lambda _: cyrt.synchronize())


def _torch(name: str, compiled: bool) -> Contender:
    import torch

    if not torch.cuda.is_available():
        raise ImportError("this PyTorch has no CUDA")
    functions = Functions(
        torch.exp,
        torch.log,
        torch.tanh,
        torch.sqrt,
        lambda x, low: x.clamp(min=low),
        lambda x, axis: x.sum(axis, keepdim=True),
        lambda x, axis: x.amax(axis, keepdim=True),
        torch.sum,
        torch.transpose,
    )

    def make(program: Program, optimizer: str, rate: float) -> tuple[Arrays, Step]:
        params = [torch.from_numpy(each.copy()).cuda().requires_grad_() for each in program.params]
        data = [torch.from_numpy(each).cuda() for each in program.data]
        kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer]
        stepping = kind(params, lr=rate, fused=True)

        def loss(*params: Any) -> Any:
            return program.loss(functions, list(params), data)

        if compiled:
            loss = torch.compile(loss)

        def step(params: Arrays) -> Arrays:
            stepping.zero_grad()
            loss(*params).backward()
            stepping.step()
            return params

        return params, step

    return Contender(
        name, make, lambda x: x.detach().cpu().numpy(), lambda _: torch.cuda.synchronize()
    )


def _adam(sqrt: Callable[[Any], Any], rate: float, p: Any, g: Any, m: Any, v: Any, t: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    step = m / (1 - 0.9**t) / (sqrt(v / (1 - 0.999**t)) + 1e-8)
    return p - rate * step, m, v


def _jax() -> Contender:
    import jax

    if jax.default_backend() != "gpu":
        raise ImportError("this JAX has no GPU")
    jax.config.update("jax_default_matmul_precision", "highest")  # float32, as the others
    functions = _functions(jax.numpy, jax.numpy.swapaxes)

    def make(program: Program, optimizer: str, rate: float) -> tuple[Arrays, Step]:
        params = [jax.numpy.asarray(each) for each in program.params]
        data = [jax.numpy.asarray(each) for each in program.data]
        zeros = [jax.numpy.zeros_like(each) for each in params]
        state = jax.numpy.zeros((), jax.numpy.int32), zeros, zeros

        @jax.jit  # type: ignore[untyped-decorator, unused-ignore]
        def compiled(params: Arrays, state: Any) -> Any:
            grads = jax.grad(lambda params: program.loss(functions, params, data))(params)
            if optimizer == "sgd":
                return [p - rate * g for p, g in zip(params, grads, strict=True)], state
            t, m, v = state[0] + 1, state[1], state[2]
            found = [
                _adam(jax.numpy.sqrt, rate, *each, t)
                for each in zip(params, grads, m, v, strict=True)
            ]
            params, m, v = map(list, zip(*found, strict=True))
            return params, (t, m, v)

        def step(params: Arrays) -> Arrays:
            nonlocal state
            params, state = compiled(params, state)
            return params

        return params, step

    return Contender("jax.jit", make, np.asarray, jax.block_until_ready)


def _mlx() -> Contender:
    import mlx.core as mx
    import mlx.optimizers

    if mx.default_device() != mx.gpu:
        raise ImportError("this MLX has no GPU")
    functions = _functions(mx, mx.swapaxes)

    def make(program: Program, optimizer: str, rate: float) -> tuple[Arrays, Step]:
        params = [mx.array(each) for each in program.params]
        data = [mx.array(each) for each in program.data]
        kind = {"sgd": mlx.optimizers.SGD, "adam": mlx.optimizers.Adam}[optimizer]
        stepping = kind(learning_rate=rate)
        stepping.init(dict(enumerate(params)))
        find = mx.grad(lambda params: program.loss(functions, params, data))

        def step(params: Arrays) -> Arrays:
            grads = dict(enumerate(find(params)))
            found = stepping.apply_gradients(grads, dict(enumerate(params)))
            params = [found[i] for i in range(len(params))]
            mx.async_eval(params, stepping.state)
            return params

        return params, step

    return Contender("MLX", make, np.array, mx.eval)


# -- what is measured ------------------------------------------------------------------------------


def _check(contender: Contender, program: Program) -> None:
    """Compare the gradient along random directions with difference quotients of the loss."""
    params, step = contender.make(program, "sgd", 1.0)
    before = [contender.to_host(each).astype(np.float64) for each in params]
    params = step(params)
    after = [contender.to_host(each).astype(np.float64) for each in params]
    functions = _functions(np, np.swapaxes)._replace(maximum=np.maximum)
    data = [each.astype(np.float64) for each in program.data]
    rng = np.random.default_rng(5)
    gradients = [b - a for b, a in zip(before, after, strict=True)]
    norm = sum(float((g * g).sum()) for g in gradients) ** 0.5
    for _ in range(3):
        directions = [rng.standard_normal(each.shape) for each in before]
        found = sum(float((g * d).sum()) for g, d in zip(gradients, directions, strict=True))
        size = 1e-6
        low, high = (
            program.loss(
                functions,
                [b + sign * size * d for b, d in zip(before, directions, strict=True)],
                data,
            )
            for sign in (-1, 1)
        )
        wanted = float(high - low) / (2 * size)
        assert abs(found - wanted) <= 1e-3 * norm, (
            f"{contender.name}, {program.name}: the derivative is {found}, expected {wanted}"
        )


def _time(contender: Contender, program: Program) -> float:
    """Return the wall time of a step, in µs."""
    params, step = contender.make(program, program.optimizer, RATE)

    def run() -> float:
        nonlocal params
        begin = time.perf_counter()
        for _ in range(STEPS):
            params = step(params)
        contender.wait(params)
        return 1e6 * (time.perf_counter() - begin) / STEPS

    run()
    if contender.name.startswith("cyrt"):
        settle_fusion(run)
    return min(run() for _ in range(ROUNDS))


# -- a layer as large as GPT-2's -------------------------------------------------------------------


def _layer(of: Any, attend: Callable[[Any, Any, Any], Any], params: Arrays, x: Any) -> Any:
    """The loss of a transformer layer, by a library's functions of whole layers."""
    scale, shift, qkv, out, up, down = params
    batch, length, width = x.shape
    y = of.linear(of.layer_norm(x, scale, shift), qkv).reshape((batch, length, 3, 12, width // 12))
    q, k, v = (y[:, :, i].swapaxes(1, 2) for i in range(3))
    y = attend(q, k, v).swapaxes(1, 2).reshape((batch, length, width))
    x = x + of.linear(y, out)
    y = of.linear(of.gelu(of.linear(of.layer_norm(x, scale, shift), up)), down)
    z = x + y
    return (z * z).mean()


class _CyrtLayers:
    linear = staticmethod(nn.linear)
    layer_norm = staticmethod(nn.layer_norm)
    gelu = staticmethod(nn.gelu_tanh)


def _large_of_cyrt(params: list[np.ndarray], x: np.ndarray) -> Callable[[], Arrays]:
    device = [cyrt.asarray(each, dtype="bfloat16") for each in params]
    inputs = cyrt.asarray(x, dtype="bfloat16")

    def loss(params: Arrays) -> cyrt.Array:
        def attend(q: cyrt.Array, k: cyrt.Array, v: cyrt.Array) -> cyrt.Array:
            return nn.attention(q, k, v, mask="causal")

        result: cyrt.Array = _layer(_CyrtLayers, attend, params, inputs)
        return result

    gradient = cyrt.grad(loss)
    return lambda: gradient(device)


def _large_of_torch(params: list[np.ndarray], x: np.ndarray) -> Callable[[], Arrays]:
    import torch
    from torch.nn import functional

    class Layers:
        linear = staticmethod(functional.linear)

        @staticmethod
        def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
            return functional.layer_norm(x, x.shape[-1:], scale, shift)

        @staticmethod
        def gelu(x: Any) -> Any:
            return functional.gelu(x, approximate="tanh")

    kind = torch.bfloat16
    device = [torch.from_numpy(each).cuda().to(kind).requires_grad_() for each in params]
    inputs = torch.from_numpy(x).cuda().to(kind)

    def attend(*qkv: Any) -> Any:
        return functional.scaled_dot_product_attention(*qkv, is_causal=True)

    def gradients() -> Arrays:
        return list(torch.autograd.grad(_layer(Layers, attend, device, inputs), device))

    return gradients


def _peak(name: str, work: Callable[[], Arrays]) -> int:
    """Return the bytes that a call needs at its peak, beyond those in use before it."""
    if name == "cyrt":
        cyrt.synchronize()
        cyrt.trim_memory()  # the peak is the current use
        before: dict[str, Any] = cyrt.memory_stats()
        work()
        cyrt.synchronize()
        after: dict[str, Any] = cyrt.memory_stats()
        return int(after["peak"] - before["in_use"])
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    allocated = torch.cuda.memory_allocated()
    work()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated() - allocated)


def _large(session: Session) -> Iterator[Row]:
    """Yield the device time and the memory of a layer's forward and backward, beside PyTorch's."""
    batch, length, width = (2, 16, 96) if session.small else (8, 1024, 768)
    rng = np.random.default_rng(7)
    shapes = [(width,), (width,), (3 * width, width), (width, width)]
    shapes += [(4 * width, width), (width, 4 * width)]
    params = [
        (rng.standard_normal(shape) / (shape[-1] if len(shape) > 1 else 1) ** 0.5).astype(
            np.float32
        )
        for shape in shapes
    ]
    x = rng.standard_normal((batch, length, width)).astype(np.float32)
    makers = {"cyrt": _large_of_cyrt, "PyTorch": _large_of_torch}
    first: list[np.ndarray] | None = None
    fastest = None
    for library in session.libraries:
        if library.name not in makers:
            continue
        gradients = makers[library.name](params, x)
        found = [library.to_host(each).astype(np.float32) for each in gradients()]
        if first is None:
            first = found
        for each, other in zip(found, first, strict=True):
            np.testing.assert_allclose(each, other, rtol=0.1, atol=0.1 * np.abs(other).max())
        for _ in range(0 if session.small else 10):
            gradients()

        def work(_: int, gradients: Callable[[], Arrays] = gradients) -> Arrays:
            return gradients()

        took = session.device_time(library, work, 4)
        fastest = fastest or took
        note = f"{took / fastest:.2f} ×" if took and fastest else ""
        note += f", {_peak(library.name, gradients) / (1 << 20):,.0f} MiB"
        case = f"layer {batch} × {length} × {width}, bfloat16"
        yield Row(case, f"{library.name}: forward and backward", device=took, note=note)


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every program and library."""
    contenders = [_cyrt("cyrt, gradients by hand", by_hand=True)]
    if hasattr(cyrt, "grad"):
        contenders.append(_cyrt("cyrt.grad", by_hand=False))
    others: tuple[Callable[[], Contender], ...] = (
        lambda: _torch("PyTorch", compiled=False),
        lambda: _torch("torch.compile", compiled=True),
        _jax,
        _mlx,
    )
    for other in () if session.small else others:
        try:
            contenders.append(other())
        except ImportError:
            continue
    for program in _programs(session.small):
        first = None
        for contender in contenders:
            if program.gradients is None and contender is contenders[0]:
                continue
            _check(contender, program)
            took = None if session.small else _time(contender, program)
            first = first or took
            note = f"{took / first:.2f} ×" if took and first else ""
            yield Row(program.name, contender.name, host=took, note=note)
    if hasattr(cyrt, "grad"):
        yield from _large(session)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
