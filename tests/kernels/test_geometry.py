"""Grid, block, shared memory and clusters: what cannot run is refused when it is recorded."""

from __future__ import annotations

import threading
from ctypes import c_int, c_size_t, c_void_p

import numpy as np
import pytest

import cyrt
from cyrt.jit import compiler
from cyrt.runtime import image

COUNT = r"""
extern "C" __global__ void count(int* y) { atomicAdd(y, 1); }
extern "C" __global__ void shared(int* y) {
    __shared__ int s[10000];
    s[threadIdx.x] = 1;
    *y = s[0];
}
"""


@pytest.fixture(scope="module")
def module():
    return cyrt.Module(COUNT)


@pytest.fixture
def y():
    return cyrt.zeros(1, dtype="int32")


def launch(kernel, grid, block, smem, y):
    kernel[grid, block, smem](y)


def add_kernel(kernel, grid, block, smem, y):
    cyrt.current_encoder().add_kernel(kernel, grid, block, (y,), smem=smem)


WAYS = pytest.mark.parametrize("run", [launch, add_kernel])


def refused(run, kernel, grid, block, smem, y, match):
    """What is recorded beside the refused launch runs, once."""
    beside = cyrt.full(5, 3.0)
    kernel[1, 1](y)
    with pytest.raises(ValueError, match=match):
        run(kernel, grid, block, smem, y)
    cyrt.synchronize()
    assert beside.numpy().tolist() == [3.0] * 5


@WAYS
@pytest.mark.parametrize(
    "block",
    [
        (1 << 31, 1 << 31, 4),
        (1 << 16, 1 << 16, 1 << 31),
        (1 << 22, 1 << 21, 1 << 21),
        ((1 << 32) - 1,) * 3,
        (1 << 31, 2, 1),
        (32, 32, 2),
        (1025, 1, 1),
        (1, 1, 1025),
    ],
)
def test_threads_of_a_block(module, y, run, block):
    threads = block[0] * block[1] * block[2]
    refused(run, module["count"], 1, block, 0, y, rf"count: a block of .* has {threads:,} threads")
    assert y.item() == 1


@WAYS
@pytest.mark.parametrize("what", ["grid", "block"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_every_dimension(module, y, run, what, axis):
    most = cyrt.Device().attribute(f"MAX_{what.upper()}_DIM_{'XYZ'[axis]}")
    sizes = {"grid": [1, 1, 1], "block": [1, 1, 1]}
    sizes[what][axis] = most + 1
    refused(
        run,
        module["count"],
        sizes["grid"],
        sizes["block"],
        0,
        y,
        rf"{what} .*{'xyz'[axis]} is at most {most:,}|has {most + 1:,} threads",
    )
    assert y.item() == 1
    if most < 1 << 20:
        sizes[what][axis] = most
        run(module["count"], sizes["grid"], sizes["block"], 0, y)
        assert y.item() == 1 + most


@WAYS
def test_shared_memory(module, y, run):
    most = cyrt.Device().attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
    run(module["shared"], 1, 1, most - 40000, y)
    refused(run, module["shared"], 1, 1, most - 39999, y, "40,000 of static shared memory")


def test_static_shared_memory_over_the_limit(y):
    most = cyrt.Device().attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
    with pytest.raises((ValueError, cyrt.CompileError), match=r"(?i)shared"):
        cyrt.Kernel(
            'extern "C" __global__ void k(int* y) {'
            f" __shared__ volatile int s[{most // 4 + 1}]; s[0] = 1; *y = s[0]; }}",
            "k",
        )[1, 1](y)
    cyrt.synchronize()
    assert y.item() == 0


def test_shared_memory_of_more_than_32_bits(module):
    for smem in (1 << 31, 1 << 32, (1 << 32) + 1024, 1 << 64):
        for ask in (
            lambda smem: module["count"].suggest(8, smem),
            lambda smem: module["count"].blocks_per_multiprocessor(32, smem),
        ):
            with pytest.raises(ValueError, match=f"smem: .*{smem}"):
                ask(smem)


@pytest.mark.parametrize("run", [lambda k, c, y: k[c](y), lambda k, c, y: k.__getitem__(c)(y)])
@pytest.mark.parametrize(
    "make",
    [lambda n: [n], lambda n: np.array(n), lambda n: (np.array(n),)],
    ids=["list", "0-d array", "tuple of one"],
)
def test_config_that_changes(module, y, make, run):
    """One tuple, whose parts are read again at every launch."""
    kernel, n = module["count"], make(1)
    for config in ((n, 1), (1, n), (1, 1, n)):
        if isinstance(n, (list, tuple)) and len(config) == 3:
            continue
        y[...] = 0
        set_to(n, 1)
        run(kernel, config, y)
        set_to(n, 8)
        run(kernel, config, y)
        assert y.item() == (2 if len(config) == 3 else 9)


def set_to(n, value):
    if isinstance(n, tuple):
        set_to(n[0], value)
    elif isinstance(n, list):
        n[0] = value
    else:
        n[...] = value


def test_smem_that_changes(y):
    kernel = cyrt.Kernel(
        'extern "C" __global__ void k(int* y) { int n;'
        ' asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(n)); *y = n; }',
        "k",
    )
    smem = np.array(128)
    config = (1, 1, smem)
    for size in (128, 1024):
        smem[...] = size
        kernel[config](y)
        assert y.item() == size


def test_constant_config_is_kept(module, y):
    kernel, config = module["count"], ((2, 2), 4)
    for _ in range(3):
        kernel[config](y)
    assert y.item() == 48


PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry count(.param .u64 p)
{
    .reg .b64 %p; .reg .b32 %r;
    ld.param.u64 %p, [p]; atom.global.add.u32 %r, [%p], 1; ret;
}
// .entry required_above(.param .u64 p) .reqntid 7
.visible .entry required(.param .u64 p)
.reqntid 64, 2 // , 3
{
    .reg .b64 %p; .reg .b32 %r;
    ld.param.u64 %p, [p]; atom.global.add.u32 %r, [%p], 1; ret;
}
.visible .entry flat(.param .u64 p) .minnctapersm 1 .reqntid 96 {
    .reg .b64 %p; .reg .b32 %r;
    ld.param.u64 %p, [p]; atom.global.add.u32 %r, [%p], 1; ret;
}
.visible .entry bounded(.param .u64 p) .maxntid 8, 8 {
    .reg .b64 %p; .reg .b32 %r;
    ld.param.u64 %p, [p]; atom.global.add.u32 %r, [%p], 1; ret;
}
"""


@WAYS
@pytest.mark.parametrize("block", [32, 128, (2, 64), (64, 2, 2), (64, 1, 2)])
def test_a_block_that_the_kernel_is_not_compiled_for(run, block, y):
    module = cyrt.Module(PTX)
    beside = cyrt.full(5, 3.0)
    module["count"][1, 1](y)
    sizes = block if isinstance(block, tuple) else (block,)
    sizes += (1,) * (3 - len(sizes))
    with pytest.raises(ValueError, match="^required: ") as refusal:
        run(module["required"], 1, block, 0, y)
    assert f"block {sizes}" in str(refusal.value)
    assert "compiled for blocks of (64, 2, 1)" in str(refusal.value)
    assert y.item() == 1
    run(module["required"], 2, (64, 2), 0, y)
    assert y.item() == 1 + 256
    assert beside.numpy().tolist() == [3.0] * 5


def test_other_kernels_of_its_module_take_any_block(y):
    module = cyrt.Module(PTX)
    module["count"][1, 32](y)
    module["bounded"][1, (64, 1)](y)
    assert y.item() == 96
    with pytest.raises(ValueError, match="96 threads, .* 64"):
        module["bounded"][1, 96](y)


def test_for_each_takes_the_block_that_the_kernel_is_compiled_for(y):
    flat = cyrt.Module(PTX)["flat"]
    assert flat.suggest(97) == (2, 96)
    flat.for_each(97, y)
    assert y.item() == 192


def test_clusters_are_of_the_device(module, y):
    device, encoder = cyrt.Device(), cyrt.current_encoder()
    if device.attribute("CLUSTER_LAUNCH"):
        for grid, cluster, match in (
            (16, 16, "at most 8"),
            (3, 2, "not a multiple"),
            ((4, 3), (2, 2), "not a multiple"),
            (8, (1 << 31, 1 << 31, 4), "at most 8"),
        ):
            with pytest.raises(ValueError, match=match):
                encoder.add_kernel(module["count"], grid, 1, (y,), cluster=cluster)
            with pytest.raises(ValueError, match=match):
                module["count"][grid, 1](y, cluster=cluster)
        encoder.add_kernel(module["count"], 4, 1, (y,), cluster=2)
        assert y.item() == 4
        module["count"][4, 1](y, cluster=2)
        module["count"][4, 1](y, writes=[y], cluster=(2, 1, 1))
        assert y.item() == 12
    else:
        with pytest.raises(
            ValueError,
            match=rf"count: cluster \(2, 1, 1\): device {device.index} "
            "has no clusters",
        ):
            encoder.add_kernel(module["count"], 4, 1, (y,), cluster=2)
        assert y.item() == 0


def test_clusters_are_checked_when_recorded(only_emulated, python):
    """The driver's answers are those of a device with clusters, and of a kernel made for 2 x 2."""
    done = python(r"""
        import ctypes
        from ctypes import c_int, c_void_p

        import pytest

        import cyrt
        from cyrt.driver import table

        ANSWERS = {"cuDeviceGetAttribute": {120: 1}, "cuFuncGetAttribute": {11: 2, 12: 2, 13: 1}}
        cyrt.Device.count()

        def replace(name):
            form = ctypes.CFUNCTYPE(c_int, c_void_p, c_int, c_void_p)
            def answer(value, which, handle):
                if which not in ANSWERS[name]:
                    return original(value, which, handle)
                ctypes.cast(value, ctypes.POINTER(c_int))[0] = ANSWERS[name][which]
                return 0
            stand_in = form(answer)
            original = form(table.replace(name, ctypes.cast(stand_in, c_void_p).value))
            return stand_in

        kept = [replace(name) for name in ANSWERS]
        code = 'extern "C" __global__ void k(int* y) {}'
        y, encoder = cyrt.zeros(1, dtype="int32"), cyrt.current_encoder()
        kernel = cyrt.Kernel(code, "k")
        with pytest.raises(ValueError, match=r"grid \(4, 3, 1\) is not a multiple .* \(2, 2, 1\)"):
            kernel[(4, 3), 1](y)
        with pytest.raises(ValueError, match=r"cluster \(4, 1, 1\): .* compiled for \(2, 2, 1\)"):
            encoder.add_kernel(kernel, (4, 4), 1, (y,), cluster=4)
        ANSWERS["cuFuncGetAttribute"].clear()
        kernel = cyrt.Kernel(code, "k")
        for grid, cluster, match in ((16, 16, "has 16 blocks, at most 8"), (3, 2, "not a multiple"),
                                     ((4, 3), (2, 2), "not a multiple"),
                                     (8, (1 << 31, 1 << 31, 4), "at most 8")):
            with pytest.raises(ValueError, match=match):
                encoder.add_kernel(kernel, grid, 1, (y,), cluster=cluster)
        encoder.add_kernel(kernel, 4, 1, (y,))
        print(y.item())
        """)
    assert done.stdout == "0\n", done.stderr


@pytest.mark.gpu
def test_clusters_that_a_kernel_is_compiled_for(y):
    if not cyrt.Device().attribute("CLUSTER_LAUNCH"):
        pytest.skip("the device has no clusters")
    kernel = cyrt.Kernel(
        'extern "C" __global__ void __cluster_dims__(2, 2) k(int* y){ atomicAdd(y, 1); }', "k"
    )
    with pytest.raises(ValueError, match=r"grid \(4, 3, 1\) is not a multiple of .*\(2, 2, 1\)"):
        kernel[(4, 3), 1](y)
    with pytest.raises(ValueError, match=r"cluster \(4, 1, 1\): .*compiled for \(2, 2, 1\)"):
        cyrt.current_encoder().add_kernel(kernel, (4, 4), 1, (y,), cluster=4)
    kernel[(4, 2), 1](y)
    cyrt.current_encoder().add_kernel(kernel, (4, 2), 1, (y,), cluster=(2, 2))
    assert y.item() == 16


def test_grids_that_count_clusters(y):
    """A kernel of __block_size__ is launched with a number of clusters."""
    source = """extern "C" __global__ void __block_size__((32, 1, 1), (2, 1, 1)) k(int* y) {
        atomicAdd(y, 1); }"""
    try:
        codes = [compiler.compile(source, arch=arch).code for arch in ("compute_90", "sm_90")]
    except cyrt.CompileError:
        pytest.skip("this NVRTC has no __block_size__")
    assert all(image.required_blocks(code)["k"].counts_clusters for code in codes)

    if not cyrt.Device().attribute("CLUSTER_LAUNCH") and not cyrt.Device().emulated:
        pytest.skip("the device has no clusters")
    kernel, encoder = cyrt.Kernel(source, "k"), cyrt.current_encoder()
    kernel[3, 32](y)
    assert y.item() == 3 * 2 * 32
    most = kernel.blocks_per_multiprocessor(32) * cyrt.Device().multiprocessors
    for grid in (most // 2 + 1, most):
        with pytest.raises(ValueError, match=rf"grid of .* has {2 * grid:,} blocks"):
            encoder.add_kernel(kernel, grid, 32, (y,), cooperative=True)


def test_cooperative_grids_fit(module, y):
    device, kernel = cyrt.Device(), module["count"]
    most = device.multiprocessors * kernel.blocks_per_multiprocessor(64)
    encoder = cyrt.current_encoder()
    for _ in range(2):
        encoder.add_kernel(kernel, most, 64, (y,), cooperative=True)
        for grid in (most + 1, (1 << 31) - 1, (most, 2)):
            with pytest.raises(ValueError, match=rf"count: a cooperative grid .*{most:,} of"):
                encoder.add_kernel(kernel, grid, 64, (y,), cooperative=True)
    assert y.item() == 2 * 64 * most


# What the driver is asked with, before a launch.
ASKED = {
    "cuFuncSetAttribute": ([c_void_p, c_int, c_int], {"smem": 60_000}),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (
        [c_void_p, c_void_p, c_int, c_size_t],
        {"cooperative": True},
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_memory_freed_while_the_driver_is_asked(replaced, name):
    """Other threads run meanwhile."""
    types, how = ASKED[name]
    kernel = cyrt.Kernel('extern "C" __global__ void k(int* y) { *y = 1; }', "k")
    y, encoder = cyrt.Buffer(4), cyrt.current_encoder()
    encoder.commit()

    def ask(original, *arguments):
        if threading.current_thread() is threading.main_thread():
            thread = threading.Thread(target=y.free)
            thread.start()
            thread.join()
        return original(*arguments)

    replaced(name, types, ask)
    with pytest.raises(ValueError, match="freed already"):
        encoder.add_kernel(kernel, 1, 1, (y,), **how)
    assert encoder.num_ops == 0


def test_shared_memory_that_two_objects_of_one_kernel_ask_for(y):
    """The driver keeps one limit a kernel: the smaller one does not take the larger one back."""
    module = cyrt.Module("__global__ void k(int* y) { atomicAdd(y, 1); }", ["k"])
    one, other = module["k"], module["_Z1kPi"]
    one[1, 1, 100_000](y)
    other[1, 1, 60_000](y)
    cyrt.synchronize()
    one[1, 1, 100_000](y)
    assert y.item() == 3


def test_shared_memory_that_two_threads_ask_for(replaced, y):
    """The driver comes to the smaller request last, and its thread goes on first."""
    kernel = cyrt.Kernel('extern "C" __global__ void k(int* y) { atomicAdd(y, 1); }', "k")
    larger = threading.Thread(target=lambda: kernel[1, 1, 100_000](y))
    allowed, launched = threading.Event(), threading.Event()

    def allow(original, function, attribute, value):
        if threading.current_thread() is larger:
            result = original(function, attribute, value)
            allowed.set()
            launched.wait(0.5)
            return result
        if not allowed.is_set():
            larger.start()
            allowed.wait(0.5)
        return original(function, attribute, value)

    replaced("cuFuncSetAttribute", ASKED["cuFuncSetAttribute"][0], allow)
    kernel[1, 1, 60_000](y)
    launched.set()
    larger.join()
    cyrt.synchronize()
    kernel[1, 1, 100_000](y)
    assert y.item() == 3


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (0, 256, r"grid: expected numbers from 1 to 2,147,483,647 \(x\) or 65,535 \(y.*, got 0$"),
        (1 << 40, 256, r"grid: .* 65,535 \(y and z\), got 1099511627776$"),
        (4, 0, r"block: expected numbers from 1 to 1,024 \(x and y\) or 64 \(z\), got 0$"),
        ((1, 0), 32, r"grid: expected numbers from 1 .*, got \(1, 0\)$"),
        (1, (), r"block: expected an int or a tuple of one to three ints, got \(\)$"),
    ],
)
def test_ranges_of_grid_and_block(module, grid, block, message):
    with pytest.raises(ValueError, match=message):
        module["count"][grid, block]
    with pytest.raises(
        TypeError, match="grid: expected an int or a tuple of one to three ints, got 1.5"
    ):
        module["count"][1.5, 1]


@pytest.mark.parametrize(
    ("grid", "block", "limit"),
    [((1, 65536), 1, "y is at most 65,535"), (1, (1, 1, 65), "z is at most 64")],
)
def test_limits_of_y_and_z(module, y, grid, block, limit):
    """They are checked where the device is known."""
    with pytest.raises(ValueError, match=limit):
        module["count"][grid, block](y)
