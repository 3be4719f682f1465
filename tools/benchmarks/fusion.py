"""Loops of small operations, written plainly, fused and not, and what other libraries compile.

Each row is the wall time of an iteration in a long loop, in µs. "cyrt, fused" is measured when what
is launched often has been compiled and compared with plain plans; a note says what is not fused.
"cyrt" is measured with `CYRT_FUSE=0`, and "torch.compile" and "jax.jit" with one decorated function
an iteration, where these are installed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from common import SETTLE_SECONDS, Row, Session, main, settle_fusion, unfused

import cyrt
from cyrt import settings
from cyrt.builtin import background
from cyrt.graph import plan_cache

State = tuple[Any, ...]
FUSING = "cyrt, fused"
ITERATIONS = 300
CHECKED, FUSED = 3, 60  # iterations of the checks
RATE, DECAY, SECOND_DECAY, EPSILON = 1e-3, 0.9, 0.999, 1e-8


class Functions(NamedTuple):
    """A library's functions, as far as the programs call them."""

    exp: Callable[[Any], Any]
    tanh: Callable[[Any], Any]
    sqrt: Callable[[Any], Any]
    sum: Callable[[Any, int], Any]  # the axis is kept
    max: Callable[[Any, int], Any]
    argmin: Callable[[Any, int], Any]
    where: Callable[[Any, Any, Any], Any]
    maximum: Callable[[Any, float], Any]
    arange: Callable[[int], Any]
    set_inner: Callable[[Any, Any], Any]  # all but the first and the last


class Program(NamedTuple):
    """A loop: what it begins with, and an iteration."""

    name: str
    start: list[np.ndarray]
    step: Callable[..., State]
    tolerance: float = 1e-4


def _set_slice(x: Any, values: Any) -> Any:
    x[1:-1] = values
    return x


def _array_functions(of: Any) -> Functions:
    return Functions(
        of.exp,
        of.tanh,
        of.sqrt,
        lambda x, axis: of.sum(x, axis=axis, keepdims=True),
        lambda x, axis: of.max(x, axis=axis, keepdims=True),
        lambda x, axis: of.argmin(x, axis=axis),
        of.where,
        of.maximum,
        of.arange,
        _set_slice,
    )


# -- the programs ----------------------------------------------------------------------------------


def chain(f: Functions, x: Any, b: Any) -> State:
    for _ in range(100):
        x = x + b
    return x, b


def logistic(f: Functions, x: Any, y: Any, w: Any) -> State:
    for _ in range(10):
        p = 1 / (1 + f.exp(-(x @ w)))
        w = w - (x.T @ (p - y)) * (0.1 / len(x))
    return x, y, w


def gelu(f: Functions, x: Any) -> State:
    for _ in range(6):
        x = 0.5 * x * (1 + f.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
    return (x,)


def layer_norm(f: Functions, x: Any, weight: Any, bias: Any) -> State:
    for _ in range(6):
        mean = f.sum(x, -1) / x.shape[-1]
        centered = x - mean
        variance = f.sum(centered * centered, -1) / x.shape[-1]
        x = centered / f.sqrt(variance + 1e-5) * weight + bias
    return x, weight, bias


def softmax(f: Functions, x: Any) -> State:
    for _ in range(6):
        e = f.exp(x - f.max(x, -1))
        x = e / f.sum(e, -1)
    return (x,)


def rnn(f: Functions, x: Any, h: Any, w: Any, u: Any, b: Any) -> State:
    for i in range(30):
        h = f.tanh(x[i] @ w + h @ u + b)
    return x, h, w, u, b


def _adam(f: Functions, p: Any, g: Any, m: Any, v: Any) -> State:
    m = DECAY * m + (1 - DECAY) * g
    v = SECOND_DECAY * v + (1 - SECOND_DECAY) * (g * g)
    return p - RATE * m / (f.sqrt(v) + EPSILON), m, v


def adam(f: Functions, *tensors: Any) -> State:
    count = len(tensors) // 4
    found: list[Any] = []
    for i in range(count):
        p, g, m, v = tensors[4 * i : 4 * i + 4]
        p, m, v = _adam(f, p, g, m, v)
        found += p, g, m, v
    return tuple(found)


def k_means(f: Functions, x: Any, centres: Any) -> State:
    for _ in range(5):
        apart = x[:, None, :] - centres[None]
        nearest = f.argmin((apart * apart).sum(-1), 1)
        chosen = nearest[:, None] == f.arange(centres.shape[0])[None]
        weights = f.where(chosen, 1.0, 0.0)
        centres = (weights.T @ x) / f.maximum(f.sum(weights, 0).T, 1.0)
    return x, centres


def heat(f: Functions, u: Any) -> State:
    for _ in range(20):
        u = f.set_inner(u, u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]))
    return (u,)


def perceptron(f: Functions, x: Any, y: Any, *state: Any) -> State:
    weights = [state[3 * i : 3 * i + 3] for i in range(3)]
    hidden = [x]
    for i, (w, _, _) in enumerate(weights):
        z = hidden[-1] @ w
        hidden.append(f.maximum(z, 0.0) if i < 2 else z)
    e = f.exp(hidden[-1] - f.max(hidden[-1], -1))
    slope = (e / f.sum(e, -1) - y) / x.shape[0]
    found: list[Any] = []
    for i in reversed(range(3)):
        w, m, v = weights[i]
        g = hidden[i].T @ slope
        if i:
            slope = f.where(hidden[i] > 0, slope @ w.T, 0.0)
        found[:0] = _adam(f, w, g, m, v)
    return (x, y, *found)


def _programs(small: bool) -> Iterator[Program]:
    rng = np.random.default_rng(3)

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    rows, columns = (8, 32) if small else (64, 768)
    yield Program(
        "chain of 100 adds, 1,024 floats", [normal(1024), normal(1024, scale=1e-3)], chain
    )
    labels = (rng.random((256, 1)) < 0.5).astype(np.float32)
    yield Program(
        "logistic regression, 10 steps",
        [normal(256, 32), labels, normal(32, 1, scale=0.1)],
        logistic,
    )
    yield Program(f"GELU by hand × 6, {rows} × {columns}", [normal(rows, columns)], gelu)
    yield Program(
        "layer norm by hand × 6",
        [normal(rows, columns), normal(columns) + 2, normal(columns)],
        layer_norm,
        1e-2,
    )
    yield Program("softmax by hand × 6", [normal(rows, columns)], softmax)
    units, steps = (16, 30) if small else (256, 30)
    yield Program(
        f"RNN cell 16 × {units} × {steps}",
        [
            normal(steps, 16, units),
            normal(16, units),
            normal(units, units, scale=0.3 / units**0.5),
            normal(units, units, scale=0.3 / units**0.5),
            normal(units),
        ],
        rnn,
    )
    tensors = []
    for i in range(6 if small else 50):
        size = 64 + 16 * (i % 5)
        tensors += [normal(size), normal(size), normal(size, scale=0.1), normal(size) ** 2]
    yield Program(f"Adam, {len(tensors) // 4} tensors, all written", tensors, adam)
    yield Program("k-means × 5", [normal(256, 8), normal(16, 8)], k_means, 1e-3)
    yield Program("heat by slices × 20", [normal(256 if small else 4096)], heat)
    sizes = (16, 24, 24, 10) if small else (64, 256, 256, 10)
    state = []
    for inner, outer in pairwise(sizes):
        weights = normal(inner, outer, scale=inner**-0.5)
        state += [weights, np.zeros_like(weights), np.zeros_like(weights)]
    classes = np.eye(10, dtype=np.float32)[rng.integers(0, 10, 64)]
    yield Program(
        f"perceptron 64 × {sizes} with Adam",
        [normal(64, sizes[0]), classes, *state],
        perceptron,
        1e-2,
    )
    large = 1 << (14 if small else 24)
    yield Program(
        f"chain of 100 adds, {large:,} floats", [normal(large), normal(large, scale=1e-3)], chain
    )


# -- libraries -------------------------------------------------------------------------------------


class Contender(NamedTuple):
    """A way to run the programs."""

    name: str
    to_device: Callable[[np.ndarray], Any]
    to_host: Callable[[Any], np.ndarray]
    functions: Functions
    decorate: Callable[[Callable[..., State]], Callable[..., State]]
    synchronize: Callable[[], None]
    tolerance: float = 0.0  # the least of a check, if products are not of full precision


def _cyrt(name: str) -> Contender:
    return Contender(
        name,
        cyrt.asarray,
        lambda x: x.numpy(),
        _array_functions(cyrt),
        lambda step: step,
        cyrt.synchronize,
    )


def _torch() -> Contender:
    import torch

    if not torch.cuda.is_available():
        raise ImportError("this PyTorch has no CUDA")

    functions = Functions(
        torch.exp,
        torch.tanh,
        torch.sqrt,
        lambda x, axis: x.sum(axis, keepdim=True),
        lambda x, axis: x.amax(axis, keepdim=True),
        torch.argmin,
        torch.where,
        lambda x, low: x.clamp(min=low),
        lambda n: torch.arange(n, device="cuda"),
        _set_slice,
    )
    return Contender(
        "torch.compile",
        lambda x: torch.from_numpy(x).cuda(),
        lambda x: x.cpu().numpy(),
        functions,
        torch.compile,
        torch.cuda.synchronize,
    )


def _jax() -> Contender:
    import jax

    if jax.default_backend() != "gpu":
        raise ImportError("this JAX has no GPU")
    functions = _array_functions(jax.numpy)._replace(set_inner=lambda x, v: x.at[1:-1].set(v))
    # Its products of float32 are TF32, with 10 bits, unless it is told otherwise.
    return Contender(
        "jax.jit",
        jax.numpy.asarray,
        np.asarray,
        functions,
        jax.jit,
        lambda: jax.effects_barrier(),
        tolerance=2e-2,
    )


def _run(contender: Contender, program: Program, iterations: int) -> list[np.ndarray]:
    """Return the state after some iterations."""
    step = contender.decorate(lambda *state: program.step(contender.functions, *state))
    state: State = tuple(contender.to_device(each.copy()) for each in program.start)
    for _ in range(iterations):
        state = step(*state)
    return [contender.to_host(each) for each in state]


def _check(contender: Contender, program: Program) -> None:
    numpy = _array_functions(np)._replace(maximum=np.maximum)
    state: State = tuple(each.astype(np.float64) for each in program.start)
    for _ in range(CHECKED):
        state = program.step(numpy, *state)
    tolerance = max(program.tolerance, contender.tolerance)
    for found, expected in zip(_run(contender, program, CHECKED), state, strict=True):
        np.testing.assert_allclose(
            found, expected, rtol=tolerance, atol=tolerance, err_msg=program.name
        )


def _check_fused(contender: Contender, program: Program) -> None:
    """Compare the results of a loop that becomes fused, bit for bit, with those of a plain one."""
    if not settings.get("CYRT_GRAPHS"):
        return
    found = []
    for fuse in (True, False):
        _fuse(fuse)
        with cyrt.Stream():
            state: State = tuple(contender.to_device(each.copy()) for each in program.start)
            for i in range(FUSED):
                state = program.step(contender.functions, *state)
                cyrt.commit()
                if i == FUSED - 10:
                    background.wait(SETTLE_SECONDS)
            launches = cyrt.current_encoder().stats()["fused_plans"]
            assert bool(launches) == fuse, f"{program.name}: {launches} fused plans were launched"
            found.append([contender.to_host(each).tobytes() for each in state])
    assert found[0] == found[1], f"{program.name}: fused and plain results differ"


def _time(contender: Contender, program: Program) -> tuple[float, str]:
    """Return the wall time of an iteration, in µs, and a note on it."""
    step = contender.decorate(lambda *state: program.step(contender.functions, *state))
    state: State = tuple(contender.to_device(each.copy()) for each in program.start)

    def run() -> float:
        nonlocal state
        begin = time.perf_counter()
        for _ in range(ITERATIONS):
            state = step(*state)
        for each in state:
            if hasattr(each, "block_until_ready"):
                each.block_until_ready()
        contender.synchronize()
        return 1e6 * (time.perf_counter() - begin) / ITERATIONS

    # The loops that are timed begin as those before them, at the same place of a batch.
    plan_cache.forget()
    run()
    if contender.name == FUSING:
        settle_fusion(run)
    encoder = cyrt.current_encoder()
    before = encoder.stats()
    took = min(run() for _ in range(5))
    return took, unfused(before, encoder.stats()) if contender.name == FUSING else ""


def _fuse(value: bool) -> None:
    os.environ["CYRT_FUSE"] = str(int(value))
    settings.get.cache_clear()


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for every program and library."""
    contenders = [_cyrt(FUSING), _cyrt("cyrt")]
    for other in () if session.small else (_torch, _jax):
        try:
            contenders.append(other())
        except ImportError:
            continue
    for program in _programs(session.small):
        for contender in contenders:
            if contender.name == FUSING:
                _check_fused(contender, program)
            _fuse(contender.name == FUSING)
            with cyrt.Stream():
                _check(contender, program)
                took, note = (None, "") if session.small else _time(contender, program)
            yield Row(program.name, contender.name, host=took, note=note)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure))
