"""Measure launches in other libraries: 100 dependent float32 additions on 1,024 elements.

``python tools/benchmarks/peers.py`` measures the libraries that are installed beside cyrt's chain;
its options are those of ``python -m cyrt bench``, and ``--case torch`` measures one.

Each peer runs in its own process, which runs this file, so that it can change or break nothing
else. Only the process that starts the others imports cyrt. A peer is a function that yields the
ways in which its library runs the chain.
"""

import ctypes
import importlib
import importlib.util
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

N = 1024
CHAIN = 100  # dependent operations
CHAINS = 10  # between two waits
TIMEOUT = 300  # seconds a peer may take, its import and compiler included

# Triton and Warp look for the names in a kernel among the globals of its module.
triton: Any
tl: Any
wp: Any

CODE = """
extern "C" __global__ void add(const float* x, const float* b, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + b[i];
}
"""


@dataclass
class Chain:
    """One way to add one to the same 1,024 elements 100 times.

    `run` puts the 100 additions on the GPU, `wait` waits for it, `read` gives the elements.
    """

    what: str
    run: Callable[[], None]
    wait: Callable[[], None]
    read: Callable[[], Any]


def _torch() -> Iterator[Chain]:
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError("this PyTorch has no CUDA")
    b = torch.ones(N, device="cuda")
    state = torch.zeros(N, device="cuda")

    def new() -> None:
        nonlocal state
        x = state
        for _ in range(CHAIN):
            x = x + b
        state = x

    yield Chain("eager, x + b", new, torch.cuda.synchronize, lambda: state.cpu().numpy())
    x = torch.zeros(N, device="cuda")

    def out() -> None:
        for _ in range(CHAIN):
            torch.add(x, b, out=x)

    yield Chain("eager, add(x, b, out=x)", out, torch.cuda.synchronize, lambda: x.cpu().numpy())
    y = torch.zeros(N, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.add(y, y, out=y)  # 0 + 0: what is loaded lazily is loaded before the capture
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(CHAIN):
            torch.add(y, b, out=y)
    yield Chain(
        "replay of a CUDAGraph", graph.replay, torch.cuda.synchronize, lambda: y.cpu().numpy()
    )


def _cupy() -> Iterator[Chain]:
    import cupy
    import numpy as np

    kernel = cupy.RawKernel(CODE, "add")
    x, b = cupy.zeros(N, cupy.float32), cupy.ones(N, cupy.float32)
    n = np.int32(N)

    def run() -> None:
        for _ in range(CHAIN):
            kernel((4,), (256,), (x, b, x, n))

    yield Chain("RawKernel", run, cupy.cuda.Stream.null.synchronize, lambda: cupy.asnumpy(x))


def _cuda_core() -> Iterator[Chain]:
    import numpy as np
    from cuda.bindings import driver
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device()
    device.set_current()
    stream = device.create_stream()
    program = Program(CODE, "c++", ProgramOptions(arch=f"sm_{device.arch}"))
    kernel = program.compile("cubin").get_kernel("add")
    x, b = (device.allocate(4 * N, stream=stream) for _ in range(2))
    stream.sync()
    for buffer, value in ((x, 0), (b, 1)):
        host = np.full(N, value, np.float32)
        _call(driver.cuMemcpyHtoD(int(buffer.handle), host.ctypes.data, host.nbytes))
    config = LaunchConfig(grid=4, block=256)
    n = np.int32(N)

    def run() -> None:
        for _ in range(CHAIN):
            launch(stream, config, kernel, x, b, x, n)

    def read() -> np.ndarray:
        out = np.empty(N, np.float32)
        _call(driver.cuMemcpyDtoH(out.ctypes.data, int(x.handle), out.nbytes))
        return out

    yield Chain("launch", run, stream.sync, read)


def _call(result: tuple[Any, ...]) -> Any:
    """The values that a function of cuda.bindings returned after its error code."""
    error, *values = result
    if error:
        raise RuntimeError(str(error))
    return values[0] if len(values) == 1 else values


def _cuda_bindings() -> Iterator[Chain]:
    import numpy as np
    from cuda.bindings import driver, nvrtc

    _call(driver.cuInit(0))
    device = _call(driver.cuDeviceGet(0))
    _call(driver.cuCtxSetCurrent(_call(driver.cuDevicePrimaryCtxRetain(device))))
    capability = driver.CUdevice_attribute
    major, minor = (
        _call(driver.cuDeviceGetAttribute(attribute, device))
        for attribute in (
            capability.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            capability.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )
    program = _call(nvrtc.nvrtcCreateProgram(CODE.encode(), b"add.cu", 0, [], []))
    _call(nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture=sm_{major}{minor}".encode()]))
    image = b" " * _call(nvrtc.nvrtcGetCUBINSize(program))
    _call(nvrtc.nvrtcGetCUBIN(program, image))
    module = _call(driver.cuModuleLoadData(image))
    kernel = _call(driver.cuModuleGetFunction(module, b"add"))
    stream = _call(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    b = int(_call(driver.cuMemAlloc(4 * N)))
    ones = np.ones(N, np.float32)
    _call(driver.cuMemcpyHtoD(b, ones.ctypes.data, ones.nbytes))
    launch = driver.cuLaunchKernel

    def way(what: str, arguments: Callable[[int], Any]) -> Chain:
        x = int(_call(driver.cuMemAlloc(4 * N)))
        zeros = np.zeros(N, np.float32)
        _call(driver.cuMemcpyHtoD(x, zeros.ctypes.data, zeros.nbytes))
        kernel_arguments = arguments(x)

        def run() -> None:
            for _ in range(CHAIN):
                (error,) = launch(kernel, 4, 1, 1, 256, 1, 1, 0, stream, kernel_arguments, 0)
                if error:
                    raise RuntimeError(str(error))

        def wait() -> None:
            _call(driver.cuStreamSynchronize(stream))

        def read() -> np.ndarray:
            out = np.empty(N, np.float32)
            _call(driver.cuMemcpyDtoH(out.ctypes.data, x, out.nbytes))
            return out

        return Chain(what, run, wait, read)

    kept: list[Any] = []

    def packed(x: int) -> int:
        """The address of the arguments' addresses."""
        values = [
            np.array([value], kind)
            for value, kind in ((x, np.uint64), (b, np.uint64), (x, np.uint64), (N, np.int32))
        ]
        pointers = np.array([value.ctypes.data for value in values], np.uint64)
        kept.extend((values, pointers))
        return int(pointers.ctypes.data)

    types = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
    yield way("cuLaunchKernel, arguments packed before", packed)
    yield way("cuLaunchKernel, ctypes arguments", lambda x: ((x, b, x, N), types))


def _triton() -> Iterator[Chain]:
    import torch

    global triton, tl
    triton = importlib.import_module("triton")
    tl = importlib.import_module("triton.language")

    # Annotations have meanings to Triton.
    @triton.jit  # type: ignore[untyped-decorator]
    def add(x, b, y, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = i < n
        tl.store(y + i, tl.load(x + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)

    x, b = torch.zeros(N, device="cuda"), torch.ones(N, device="cuda")

    def run() -> None:
        for _ in range(CHAIN):
            add[(4,)](x, b, x, N, BLOCK=256)

    yield Chain("jit", run, torch.cuda.synchronize, lambda: x.cpu().numpy())


def _numba() -> Iterator[Chain]:
    import numpy as np
    from numba import cuda

    @cuda.jit  # type: ignore[untyped-decorator]  # Numba has no types
    def add(x: Any, b: Any, y: Any) -> None:
        i = cuda.grid(1)
        if i < y.size:
            y[i] = x[i] + b[i]

    x = cuda.to_device(np.zeros(N, np.float32))
    b = cuda.to_device(np.ones(N, np.float32))

    def run() -> None:
        for _ in range(CHAIN):
            add[4, 256](x, b, x)

    yield Chain("cuda.jit", run, cuda.synchronize, x.copy_to_host)


def _jax() -> Iterator[Chain]:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import numpy as np

    device = jax.devices("gpu")[0]
    add = jax.jit(lambda x, b: x + b)
    b = jax.device_put(np.ones(N, np.float32), device)
    state = jax.device_put(np.zeros(N, np.float32), device)

    def run() -> None:
        nonlocal state
        x = state
        for _ in range(CHAIN):
            x = add(x, b)
        state = x

    yield Chain("jit of x + b", run, lambda: state.block_until_ready(), lambda: np.asarray(state))


def _mlx() -> Iterator[Chain]:
    import mlx.core as mx
    import numpy as np

    if not mx.cuda.is_available():
        raise RuntimeError("this MLX has no CUDA")
    mx.set_default_device(mx.gpu)
    state, b = mx.zeros((N,), mx.float32), mx.ones((N,), mx.float32)
    mx.eval(state, b)

    def run() -> None:
        nonlocal state
        x = state
        for _ in range(CHAIN):
            x = x + b
        mx.async_eval(x)
        state = x

    yield Chain("x + b, async_eval every 100", run, mx.synchronize, lambda: np.array(state))


def _warp() -> Iterator[Chain]:
    global wp
    wp = importlib.import_module("warp")
    wp.config.quiet = True
    floats = wp.array(dtype=wp.float32)

    # Warp takes types from annotations, which are objects of its own.
    @wp.kernel  # type: ignore[untyped-decorator]
    def add(x: floats, b: floats, y: floats):  # type: ignore[no-untyped-def, valid-type]
        i = wp.tid()
        y[i] = x[i] + b[i]  # type: ignore[index]

    device = wp.get_device("cuda:0")
    b = wp.full(N, 1.0, dtype=wp.float32, device=device)

    def launches(x: Any) -> None:
        for _ in range(CHAIN):
            wp.launch(add, dim=N, inputs=[x, b, x], device=device)

    def wait() -> None:
        wp.synchronize_device(device)

    x = wp.zeros(N, dtype=wp.float32, device=device)
    yield Chain("launch", lambda: launches(x), wait, x.numpy)
    y = wp.zeros(N, dtype=wp.float32, device=device)
    with wp.ScopedCapture(device=device) as capture:
        launches(y)
    yield Chain(
        "replay of a captured graph", lambda: wp.capture_launch(capture.graph), wait, y.numpy
    )


@dataclass(frozen=True)
class Peer:
    """A library: the chain in it, the modules it needs, and how they are installed."""

    chains: Callable[[], Iterator[Chain]]
    modules: tuple[str, ...]
    install: str


PEERS = {
    "torch": Peer(_torch, ("torch",), "torch"),
    "cupy": Peer(_cupy, ("cupy",), "cupy-cuda13x"),
    "cuda.core": Peer(_cuda_core, ("cuda.core",), "'cuda-core[cu13]'"),
    "cuda.bindings": Peer(_cuda_bindings, ("cuda.bindings",), "cuda-bindings nvidia-cuda-nvrtc"),
    "triton": Peer(_triton, ("triton", "torch"), "triton torch"),
    "numba": Peer(_numba, ("numba", "numba_cuda"), "'numba-cuda[cu13]'"),
    "jax": Peer(_jax, ("jax",), "'jax[cuda13]'"),
    "mlx": Peer(_mlx, ("mlx",), "'mlx[cuda13]'"),
    "warp": Peer(_warp, ("warp",), "warp-lang"),
}


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a parent is missing
        return False


def _has_gpu() -> bool:
    """Whether an NVIDIA driver opens and reports a device."""
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return (
        driver.cuInit(0) == 0
        and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
        and count.value > 0
    )


def _time(chain: Chain, rounds: int) -> dict[str, Any]:
    """Median host and wall µs an operation; the results are checked before and after."""

    def check(chains: int) -> None:
        chain.wait()
        found = chain.read()
        wrong = [i for i in range(N) if found[i] != CHAIN * chains]
        if wrong or found.shape != (N,):
            raise RuntimeError(
                f"{chain.what}: element {wrong[0]} is {found[wrong[0]]}, expected "
                f"{CHAIN * chains}; its time does not count"
            )

    hosts, walls = [], []
    chain.run()
    check(1)
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(CHAINS):
            chain.run()
        middle = time.perf_counter()
        chain.wait()
        hosts.append(middle - begin)
        walls.append(time.perf_counter() - begin)
    check(1 + rounds * CHAINS)
    return {
        "what": chain.what,
        "host": 1e6 * statistics.median(hosts) / (CHAIN * CHAINS),
        "wall": 1e6 * statistics.median(walls) / (CHAIN * CHAINS),
    }


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]


def _run(name: str, rounds: int, file: Path) -> None:
    """Run one peer in this process; writes a line of JSON for each of its ways."""
    peer = PEERS[name]
    with file.open("w") as out:
        try:
            for chain in peer.chains():
                print(json.dumps(_time(chain, rounds)), file=out, flush=True)
        except Exception as error:
            print(json.dumps({"what": "", "note": _one_line(error)}), file=out, flush=True)


def measure(name: str, rounds: int) -> list[dict[str, Any]]:
    """Measure a peer; each row has `what`, and `host` and `wall` or a `note` that says why not."""
    peer = PEERS[name]
    missing = [module for module in peer.modules if not _installed(module)]
    if missing:
        return [{"what": "", "note": f"not installed: pip install {peer.install}"}]
    if not _has_gpu():
        return [{"what": "", "note": "no GPU"}]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows"
        file.touch()
        note = ""
        try:
            done = subprocess.run(
                [sys.executable, "-P", __file__, "--one", name, str(rounds), str(file)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
            if done.returncode < 0:
                note = f"crashed: {signal.Signals(-done.returncode).name}"
            elif done.returncode:
                note = (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:300]
        except subprocess.TimeoutExpired:
            note = f"not ready after {TIMEOUT} s"
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    if note:
        rows.append({"what": "", "note": note})
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Measure all peers, or the named ones, and print and write their rows."""
    from cyrt.bench.cases import CASES, Case
    from cyrt.bench.result import BenchResult
    from cyrt.cli.bench import run_script

    def case(name: str) -> Case:
        return Case(
            lambda bench: (
                BenchResult("peer", name, **found) for found in measure(name, bench.rounds)
            )
        )

    return run_script({"chain": CASES["chain"], **{name: case(name) for name in PEERS}}, arguments)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        _run(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
    else:
        sys.exit(main())
