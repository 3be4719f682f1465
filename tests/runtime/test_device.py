from __future__ import annotations

import threading

import pytest

import cyrt


def test_properties():
    device = cyrt.Device(0)
    assert device.index == 0
    assert device.name
    major, _minor = device.compute_capability
    assert major >= 5
    assert device.multiprocessors > 0
    assert isinstance(device.concurrent_managed_access, bool)
    free, total = device.memory_info()
    assert 0 < free <= total
    assert len(device.uuid) == 40


def test_emulated_device_says_so(only_emulated):
    device = cyrt.Device(0)
    assert device.emulated
    assert device.name == "cyrt emulated device"
    assert device.compute_capability == (9, 0)


def test_attribute_by_name():
    device = cyrt.Device(0)
    assert device.attribute("WARP_SIZE") == 32
    assert device.attribute("max_threads_per_block") == 1024
    assert device.attribute("CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z") == 64


def test_unknown_attribute_suggests():
    with pytest.raises(ValueError, match=r"'WARP_SIZ'; close to it: WARP_SIZE"):
        cyrt.Device(0).attribute("WARP_SIZ")


def test_limits_of_a_context(python):
    """Each is set before the kernels that it concerns, and refused later."""
    done = python(r"""
        import pytest

        import cyrt

        device = cyrt.Device()
        for name in ("heap", "stack", "printf"):
            before = device.limit(name)
            assert before > 0
            device.set_limit(name, before + 4096)
            assert device.limit(name) >= before + 4096
        with pytest.raises(ValueError, match="limit 'heap', 'stack' or 'printf', got 'heaps'"):
            device.limit("heaps")
        with pytest.raises(ValueError, match="limit 'heap', 'stack' or 'printf', got 3"):
            device.set_limit(3, 1)
        with pytest.raises(TypeError, match="nbytes: expected an int, got 1.5"):
            device.set_limit("heap", 1.5)
        with pytest.raises(TypeError, match="nbytes: expected an int, got True"):
            device.set_limit("heap", True)
        with pytest.raises(ValueError, match="bytes from 0 to 2\\*\\*63 - 1, got -1"):
            device.set_limit("stack", -1)
        if device.emulated:
            with pytest.raises(RuntimeError, match="not allow .* limit 'stack', which stays"):
                device.set_limit("stack", 1 << 40)
        device.set_limit("heap", 64 << 20)
        """)
    assert done.returncode == 0, done.stderr


def test_heap_of_kernels(python, only_emulated):
    """malloc returns NULL beyond the limit, and free makes room."""
    done = python(r"""
        import pytest

        import cyrt

        code = '''extern "C" __global__ void k(int* got, unsigned long long n, bool release) {
            char* p = (char*)malloc(n);
            got[threadIdx.x] = p != nullptr;
            if (p) p[0] = 1, p[n - 1] = 2, got[threadIdx.x] += p[0] + p[n - 1] - 3;
            if (release) free(p);
        }'''
        device, got = cyrt.Device(), cyrt.zeros(32, dtype="int32")
        assert device.limit("heap") == 8 << 20
        device.set_limit("heap", 5 << 20)
        kernel = cyrt.Kernel(code, "k")
        for _ in range(2):
            kernel[1, 32](got, 1 << 20, True)
            assert got.sum().item() == 5
        kernel[1, 32](got, 6 << 20, False)
        assert got.sum().item() == 0
        kernel[1, 32](got, 1 << 20, False)
        kernel[1, 32](got, 1, False)
        assert got.sum().item() == 0
        with pytest.raises(RuntimeError, match="before the first launch of a kernel that calls "
                           "malloc or free"):
            device.set_limit("heap", 64 << 20)
        assert device.limit("heap") == 5 << 20
        device.reset()
        kernel, got = cyrt.Kernel(code, "k"), cyrt.zeros(32, dtype="int32")
        device.set_limit("heap", 40 << 20)
        kernel[1, 32](got, 1 << 20, False)
        assert got.sum().item() == 32
        """)
    assert done.returncode == 0, done.stderr


def test_free_of_memory_that_malloc_did_not_give(python, only_emulated):
    done = python("""
        import cyrt

        k = cyrt.Kernel('extern "C" __global__ void k(int* p) { free(p); }', "k")
        k[1, 1](cyrt.zeros(1, dtype="int32"))
        cyrt.synchronize()
        """)
    assert "which malloc never gave" in done.stderr


@pytest.mark.parametrize(("stack", "fits"), [(1024, False), (64 << 10, True)])
def test_stack_of_kernels(python, only_emulated, stack, fits):
    done = python(
        """
        import os

        import cyrt

        k = cyrt.Kernel('''
            __device__ __noinline__ int deep(const int* x, int n) {
                return n == 0 ? 0 : x[0] + deep(x, n - 1) * x[1];
            }
            extern "C" __global__ void k(const int* x, int* y) { y[0] = deep(x, 500); }''', "k")
        device, y = cyrt.Device(), cyrt.zeros(1, dtype="int32")
        assert device.limit("stack") == 1024
        device.set_limit("stack", int(os.environ["STACK"]))
        k[1, 1](cyrt.asarray([1, 1], dtype="int32"), y)
        print(y.item())
        """,
        STACK=str(stack),
    )
    if fits:
        assert done.stdout == "500\n", done.stderr
    else:
        assert f"stack of {stack} bytes is full" in done.stderr
        assert "Device.set_limit('stack', nbytes) makes it larger" in done.stderr


def test_output_of_kernels(python, only_emulated):
    """As on a GPU, the oldest of what one launch prints is lost."""
    done = python("""
        import pytest

        import cyrt

        k = cyrt.Kernel('''#include <cstdio>
            extern "C" __global__ void k(int first) {
                for (int i = 0; i < 10; ++i) printf("%04d\\\\n", first + i); }''', "k")
        device = cyrt.Device()
        device.set_limit("printf", 20)
        k[1, 1](0)
        cyrt.synchronize()  # without memory in common the two launches have no order
        k[1, 1](100)
        cyrt.synchronize()
        with pytest.raises(RuntimeError, match="of a kernel that calls printf"):
            device.set_limit("printf", 1 << 20)
        """)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [f"{i:04d}" for i in [6, 7, 8, 9, 106, 107, 108, 109]]


@pytest.mark.parametrize("index", [-1, 99, 1 << 20, 1 << 40, 1 << 100])
def test_index_out_of_range(index):
    with pytest.raises(ValueError, match=f"device {index}: expected an index from 0 to"):
        cyrt.Device(index)


@pytest.mark.parametrize("index", [b"0", 0.0, True, [0]])
def test_index_of_another_type(index):
    with pytest.raises(TypeError, match="int"):
        cyrt.Device(index)


def test_compared_and_hashed_by_index():
    assert cyrt.Device(0) == cyrt.Device(0)
    assert len({cyrt.Device(0), cyrt.Device(0)}) == 1
    assert cyrt.Device(0) != 0
    assert cyrt.Device(cyrt.Device(0)).index == 0


def test_pickles():
    import pickle

    assert pickle.loads(pickle.dumps(cyrt.Device(0))) == cyrt.Device(0)


TWO = {"CYRT_EMULATED_DEVICES": "2", "CYRT_DEVICE": "emulated"}


def test_current_device_is_per_thread_and_nests(python):
    done = python(
        """
        import threading
        import cyrt
        assert cyrt.Device.count() == 2
        seen = []
        with cyrt.Device(1):
            assert cyrt.Device.current().index == 1
            assert cyrt.Buffer(8).device.index == 1
            with cyrt.Device(0):
                assert cyrt.Device().index == 0
            assert cyrt.Device().index == 1
            t = threading.Thread(target=lambda: seen.append(cyrt.Device().index))
            t.start(); t.join()
        assert seen == [0], seen
        assert cyrt.Device().index == 0
        assert cyrt.Stream(1).device.index == 1
        assert cyrt.Event(1).device.index == 1
        assert cyrt.Buffer(4, device=1).device == cyrt.Device(1)
        """,
        **TWO,
    )
    assert done.returncode == 0, done.stderr


def test_names_of_devices(python):
    """Those of other libraries, wherever a device is taken; "cuda" is the current one."""
    done = python(
        """
        import cyrt
        assert cyrt.is_available()
        assert cyrt.Device("cuda") == cyrt.Device("cuda:0") == cyrt.Device(0)
        assert cyrt.Device("cuda:1").index == 1
        x = cyrt.zeros(3, device="cuda:1")
        assert x.device == cyrt.Device(1)
        with cyrt.Device("cuda:1"):
            assert cyrt.ones(3, device="cuda").device.index == 1
            assert cyrt.Stream("cuda:0").device.index == 0
        assert cyrt.asarray([1], device="cuda").device.index == 0
        assert cyrt.random.uniform(shape=3, device="cuda:1").device.index == 1
        assert cyrt.random.uniform(x, shape=3, device="cuda:1").device.index == 1
        assert x.to_device("cuda:0").device.index == 0
        assert x.to_device("cuda:1") is x
        assert type(x.to_device("cpu")).__name__ == "ndarray"
        assert cyrt.Buffer(8, device="cuda:1").device.index == 1
        cyrt.memory_stats("cuda:1")
        for call in (
            lambda: cyrt.zeros(3, device="cpu"),
            lambda: cyrt.zeros(3, device="cuda:2"),
            lambda: cyrt.zeros(3, device="cuda:"),
            lambda: cyrt.Device("gpu"),
            lambda: x.to_device("mps"),
        ):
            try:
                call()
            except ValueError as error:
                print(error)
        """,
        **TWO,
    )
    assert done.stdout.splitlines() == [
        "device: 'cpu': arrays are on a GPU, or an emulated one; numpy() copies one to the host",
        "device 2: expected an index from 0 to 1; there are 2 devices",
        *(
            "device: expected a cyrt.Device, an int, or text such as 'cuda' or 'cuda:1', got "
            + each
            for each in ("'cuda:'", "'gpu'", "'mps'")
        ),
    ], done.stderr


def test_no_device_is_available(python):
    done = python(
        "import cyrt; print(cyrt.is_available())", CYRT_DEVICE="cuda", CUDA_VISIBLE_DEVICES=""
    )
    assert done.stdout == "False\n", done.stderr


def test_nobody_elses_current_context_changes():
    """Another library's view of the thread, through cuda-python on a GPU and the table else."""
    import ctypes

    from cyrt.driver import table

    cyrt.Buffer(16)
    library = ctypes.CDLL(table.driver_info()[0])
    current = ctypes.c_void_p(1)
    seen = []

    def use():
        library.cuCtxGetCurrent(ctypes.byref(current))
        before = current.value
        buffer = cyrt.Buffer(1 << 20)
        buffer.fill(1)
        cyrt.synchronize()
        cyrt.Event().record().synchronize()
        library.cuCtxGetCurrent(ctypes.byref(current))
        seen.append((before, current.value))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert seen == [(None, None)]


@pytest.mark.gpu
def test_current_device_of_pytorch_stays():
    torch = pytest.importorskip("torch", reason="tested beside PyTorch, which is not installed")
    tensor = torch.ones(4, device="cuda")
    before = torch.cuda.current_device()
    cyrt.Buffer(64).fill(0)
    cyrt.synchronize()
    assert torch.cuda.current_device() == before
    assert float((tensor + tensor).sum()) == 8.0


@pytest.mark.gpu
def test_reset_is_refused_on_a_gpu():
    with pytest.raises(RuntimeError, match="Restart the process"):
        cyrt.Device(0).reset()


def test_results_that_die_after_a_reset(python):
    """Their memory is that of the old context: nothing of it returns to the new one's pool."""
    done = python(
        """
        import cyrt
        x = cyrt.ones(64)
        kept = [x + 1 for _ in range(3)]
        cyrt.synchronize()
        del kept[0], kept[0]    # The next ones are released without further checks.
        cyrt.Device(0).reset()
        kept.clear()
        assert cyrt.memory_stats()["in_use"] == 0, cyrt.memory_stats()
        """,
        CYRT_DEVICE="emulated",
    )
    assert done.returncode == 0, done.stderr


def test_reset_ends_older_objects(python):
    done = python(
        """
        import cyrt
        buffer, stream, event = cyrt.Buffer(64), cyrt.Stream(), cyrt.Event()
        source = 'extern "C" __global__ void k(float* x) { x[0] = 1; }'
        k, of_variable = cyrt.Kernel(source, "k"), cyrt.Module("__device__ int v;" + source)["k"]
        k[1, 1](buffer)
        of_variable[1, 1](buffer)
        cyrt.Device(0).reset()
        for use in (lambda: buffer.fill(0), stream.synchronize, event.record,
                    lambda: buffer.ptr, lambda: buffer[8:].copy_to(bytearray(56)),
                    lambda: cyrt.Stream().wait(stream), lambda: cyrt.Stream().wait(event),
                    stream.__enter__, lambda: of_variable[1, 1](cyrt.Buffer(64))):
            try:
                use()
            except RuntimeError as error:
                assert "reset" in str(error), error
            else:
                raise AssertionError("an object of the old context was used")
        del buffer, stream, event
        again = cyrt.Buffer(64)
        again.fill(7)
        k[1, 1](again)
        out = bytearray(64)
        again.copy_to(out)
        assert out == bytes([0, 0, 128, 63]) + bytes([7]) * 60
        """,
        CYRT_DEVICE="emulated",
    )
    assert done.returncode == 0, done.stderr


def test_after_a_reset_older_operations_are_not_in_flight(python):
    done = python(
        """
        import cyrt
        from cyrt.driver import table
        endless = cyrt.Kernel('extern "C" __global__ void old(volatile int* x) { while (!*x) {} }',
                              "old")
        flag = cyrt.Buffer(4)
        flag.fill(0)
        endless[1, 1](flag)
        cyrt.commit()
        assert "old" in table.operations_in_flight(0)
        cyrt.Device(0).reset()
        assert table.operations_in_flight(0) == ""
        bad = cyrt.Kernel('extern "C" __global__ void bad(int* x) { *x = 1; }', "bad")
        bad[1, 1](None)
        try:
            cyrt.synchronize()
        except cyrt.CudaError as error:
            print(error)
        """,
        CYRT_DEVICE="emulated",
        CYRT_GRAPHS="1",
        CYRT_LAUNCH_BLOCKING="0",
        CYRT_EXIT_TIMEOUT="0.2",
    )
    assert done.returncode == 0, done.stderr
    assert "Operations in flight: bad." in done.stdout
    assert "old" not in done.stdout


def test_two_threads_reset_a_device(python):
    """The second one waits: it finds a context, and no call meets one that goes."""
    done = python(
        """
        import threading
        import cyrt
        from cyrt.runtime import device
        inside, most = 0, 0

        def hook(ordinal):
            global inside, most
            inside += 1
            most = max(most, inside)
            if len(threads) == 1:
                threads.append(threading.Thread(target=cyrt.Device(0).reset))
                threads[1].start()
                threads[1].join(0.3)
            inside -= 1

        cyrt.Buffer(4)
        device.reset_hooks.append(hook)
        threads = [threading.Thread(target=cyrt.Device(0).reset)]
        threads[0].start()
        threads[0].join()
        threads[1].join()
        cyrt.Buffer(4).fill(0)
        cyrt.synchronize()
        print(most)
        """,
        CYRT_DEVICE="emulated",
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
