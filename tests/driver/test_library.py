"""Choosing and opening the driver."""

from __future__ import annotations

import pytest

from cyrt.driver import library
from cyrt.driver.errors import CompileError, CudaError, OutOfMemoryError


class FakeDriver:
    """As much of a driver as opening it asks for."""

    def __init__(self, version=13000, init=0, count=1):
        self._version, self._init, self._count = version, init, count

    def cuDriverGetVersion(self, out):
        out._obj.value = self._version
        return 0

    def cuInit(self, flags):
        return self._init

    def cuDeviceGetCount(self, out):
        out._obj.value = self._count
        return 0

    def cuGetErrorName(self, code, out):
        out._obj.value = b"CUDA_ERROR_NO_DEVICE"
        return 0


@pytest.fixture
def choose(monkeypatch):
    def set_choice(choice, driver):
        real = library.ctypes.CDLL

        def open_(name):
            if name == library.driver_name():
                if driver is None:
                    raise OSError(f"{name}: cannot open shared object file")
                return driver
            return real(name)

        monkeypatch.setattr(library.ctypes, "CDLL", open_)
        get = library.settings.get
        monkeypatch.setattr(
            library.settings, "get", lambda name: choice if name == "CYRT_DEVICE" else get(name)
        )

    return set_choice


def test_no_driver_names_the_library_and_the_way_out(choose):
    choose("cuda", None)
    with pytest.raises(CudaError, match=r"libcuda\.so\.1.*cannot be opened") as caught:
        library.open_library()
    assert "CYRT_DEVICE=emulated" in str(caught.value)


def test_driver_too_old_names_both_versions(choose):
    choose("cuda", FakeDriver(version=11080))
    with pytest.raises(CudaError, match=r"supports CUDA 11\.8, cyrt needs 12\.0"):
        library.open_library()


@pytest.mark.parametrize("driver", [FakeDriver(init=100), FakeDriver(count=0)])
def test_driver_with_no_device(choose, driver):
    choose("cuda", driver)
    with pytest.raises(CudaError, match="reports no device"):
        library.open_library()


def test_auto_takes_a_driver_with_a_device(choose):
    driver = FakeDriver()
    choose("auto", driver)
    assert library.open_library() == (driver, False)


@pytest.mark.parametrize("driver", [None, FakeDriver(version=11080), FakeDriver(count=0)])
def test_auto_falls_back_with_a_warning(choose, driver):
    choose("auto", driver)
    with pytest.warns(RuntimeWarning, match="emulated device"):
        opened, emulated = library.open_library()
    assert emulated
    assert opened._name.endswith("libcyrt_emu.so")


def test_emulated_is_chosen_silently(choose, recwarn):
    choose("emulated", FakeDriver())
    assert library.open_library()[1]
    assert not recwarn


def test_emulated_device_for_other_processors(monkeypatch):
    class OtherProcessors:
        def __init__(self, name):
            assert name.endswith("libcyrt_emu.so")

        def cyrt_emu_runs_here(self):
            return 0

    monkeypatch.setattr(library.ctypes, "CDLL", OtherProcessors)
    with pytest.raises(CudaError, match="compiled for processors with AVX2 and FMA") as caught:
        library._open_emulator()
    assert "-Dprocessors=all" in str(caught.value)


def test_unknown_choice(python):
    done = python("import cyrt; cyrt.Device()", CYRT_DEVICE="gpu")
    assert done.returncode
    assert "CYRT_DEVICE='gpu': expected one of auto, cuda, emulated" in done.stderr


def test_settings_of_the_emulated_device(python):
    """Its library reads numbers; the variables are written as the README has them."""
    done = python(
        """
        import cyrt
        assert cyrt.Device.count() == 2
        assert cyrt.Device(1).memory_info()[1] == 3 << 29
        k = cyrt.Kernel('extern "C" __global__ void k(int* x) { x[0] = x[1]; }', "k")
        k[1, 1](cyrt.Buffer(8))
        try:
            cyrt.synchronize()
        except cyrt.CudaError as error:
            print(error)
        """,
        CYRT_DEVICE="emulated",
        CYRT_EMULATED_MEMORY="1536M",
        CYRT_EMULATED_DEVICES=" 2",
        CYRT_CHECK="yes",
    )
    assert "nobody has written" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("CYRT_EMULATED_DEVICES", "two", "a whole number from 1 to 2**31 - 1"),
        ("CYRT_EMULATED_DEVICES", "2147483648", "a whole number from 1 to 2**31 - 1"),
        ("CYRT_EMULATED_MEMORY", "much", "a number of bytes"),
        ("CYRT_CHECK", "perhaps", "0 or 1"),
    ],
)
def test_bad_settings_of_the_emulated_device(python, name, text, expected):
    done = python("import cyrt; cyrt.Device()", **{"CYRT_DEVICE": "emulated", name: text})
    assert f"ValueError: {name}={text!r}: expected {expected}" in done.stderr


def test_error_carries_call_name_and_code():
    error = CudaError("cuMemAlloc", 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")
    assert (error.call, error.code, error.name) == ("cuMemAlloc", 2, "CUDA_ERROR_OUT_OF_MEMORY")
    assert str(error) == "cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"
    assert isinstance(error, RuntimeError)


def test_error_gives_advice():
    assert "nvidia-smi" in str(CudaError("cuInit", 100, "CUDA_ERROR_NO_DEVICE"))


def test_exception_classes():
    assert issubclass(OutOfMemoryError, (CudaError, MemoryError))
    assert issubclass(OutOfMemoryError, MemoryError)
    assert CompileError("c", 1, "n", "t", "the log").log == "the log"


def test_errors_survive_pickling():
    import pickle

    for error in (CudaError("a", 1, "b", "c", "d"), CompileError("a", 1, "b", "c", "log")):
        again = pickle.loads(pickle.dumps(error))
        assert str(again) == str(error)
        assert vars(again) == vars(error)
