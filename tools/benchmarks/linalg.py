"""Times of cyrt.linalg beside CuPy and PyTorch, where these can be imported.

``python -P tools/benchmarks/linalg.py`` prints microseconds a call: pipelined calls (many calls,
one wait), and for cyrt also the host's time. Results are checked before they are timed.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import cyrt

CASES = [(1_000, 16), (1, 32), (1, 64), (1, 256), (1, 1_024)]
FUNCTIONS = ("cholesky", "solve", "inv", "qr", "eigh", "svd")


def adjoint(x: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.conj(np.swapaxes(x, -1, -2))
    return result


def matrices(batch: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric positive definite matrices, and right-hand sides."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=(batch, n, n))
    x = x @ adjoint(x) / n + np.eye(n)
    b = rng.normal(size=(batch, n, 1))
    return x.astype(np.float32), b.astype(np.float32)


def difference(name: str, x: np.ndarray, b: np.ndarray, found: Any) -> float:
    """The backward error of a result, relative to the matrix."""
    parts = [np.asarray(each, np.float64) for each in found]
    wide = x.astype(np.float64)
    if name == "cholesky":
        error = parts[0] @ adjoint(parts[0]) - wide
    elif name == "solve":
        error = wide @ parts[0] - b
    elif name == "inv":
        error = wide @ parts[0] - np.eye(x.shape[-1])
    elif name == "qr":
        error = parts[0] @ parts[1] - wide
    elif name == "eigh":
        error = wide @ parts[1] - parts[1] * parts[0][..., None, :]
    else:
        error = (parts[0] * parts[1][..., None, :]) @ parts[2] - wide
    return float(np.abs(error).max() / np.abs(wide).max())


def timed(call: Callable[[], Any], wait: Callable[[], Any], seconds: float) -> tuple[float, float]:
    """Microseconds a call: pipelined, and the host's part. The best of five rounds."""
    for _ in range(5):
        call()
    wait()
    begin = time.perf_counter()
    call()
    wait()
    count = max(3, min(300, int(seconds / (time.perf_counter() - begin + 1e-9))))
    walls, hosts = [], []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        hosts.append(time.perf_counter() - begin)
        wait()
        walls.append(time.perf_counter() - begin)
    return min(walls) / count * 1e6, min(hosts) / count * 1e6


class Cyrt:
    def __init__(self) -> None:
        self.wait = cyrt.synchronize

    def array(self, x: np.ndarray) -> Any:
        return cyrt.asarray(x)

    def host(self, x: Any) -> np.ndarray:
        return np.asarray(x.numpy())

    def function(self, name: str) -> Any:
        return getattr(cyrt.linalg, name)


class CuPy:
    def __init__(self) -> None:
        self.cupy = importlib.import_module("cupy")
        self.wait = self.cupy.cuda.Device().synchronize

    def array(self, x: np.ndarray) -> Any:
        return self.cupy.asarray(x)

    def host(self, x: Any) -> np.ndarray:
        return np.asarray(self.cupy.asnumpy(x))

    def function(self, name: str) -> Any:
        return getattr(self.cupy.linalg, name)


class Torch:
    def __init__(self) -> None:
        self.torch = importlib.import_module("torch")
        self.wait = self.torch.cuda.synchronize

    def array(self, x: np.ndarray) -> Any:
        return self.torch.from_numpy(x).cuda()

    def host(self, x: Any) -> np.ndarray:
        return np.asarray(x.cpu().numpy())

    def function(self, name: str) -> Any:
        return getattr(self.torch.linalg, name)


def libraries() -> dict[str, Any]:
    """The libraries that can be imported and have a device."""
    found: dict[str, Any] = {"cyrt": Cyrt()}
    for name, make in (("CuPy", CuPy), ("PyTorch", Torch)):
        try:
            library = make()
            library.wait()
        except Exception as error:  # whatever the library raises without a device
            print(f"{name} is left out: {type(error).__name__}: {str(error).splitlines()[0][:90]}")
        else:
            found[name] = library
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each round (default: 0.2)")
    parser.add_argument("--largest", type=int, default=1_024, help="the largest matrix")
    options = parser.parse_args()
    found = libraries()
    print(f"{'':14}{'':10}" + "".join(f"{name:>12}" for name in found) + "   cyrt's host   ratio")
    for batch, n in CASES:
        if n > options.largest:
            continue
        x, b = matrices(batch, n)
        for name in FUNCTIONS:
            walls, host = {}, 0.0
            for library, each in found.items():
                arguments = [each.array(x)] + ([each.array(b)] if name == "solve" else [])
                function = each.function(name)
                try:
                    result = function(*arguments)
                    parts = result if isinstance(result, tuple) else (result,)
                    error = difference(name, x, b, [each.host(part) for part in parts])
                    if not error < 1e-3:
                        raise ArithmeticError(f"backward error {error:.1e}")
                    walls[library], own = timed(
                        functools.partial(function, *arguments), each.wait, options.seconds
                    )
                    host = own if library == "cyrt" else host
                except Exception as failure:  # the other rows are printed
                    print(f"{name} of {batch} x {n}: {library}: {failure!r:.120}")
            others = [value for library, value in walls.items() if library != "cyrt"]
            ratio = f"{walls['cyrt'] / min(others):8.2f}" if others and "cyrt" in walls else ""
            row = "".join(f"{walls.get(library, float('nan')):12.1f}" for library in found)
            print(f"{batch:>6} x {n:<5}{name:10}{row}{host:14.2f}{ratio:>8}", flush=True)


if __name__ == "__main__":
    main()
