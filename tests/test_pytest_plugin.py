"""``pytest --cyrt-check``."""

from __future__ import annotations

import importlib.metadata

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("only_emulated")

GONE = "*cyrt has reset device 0: the arrays that were made on it before are gone, *wider scope*"

KERNELS = '''
import cyrt
import pytest

SOURCE = r"""
extern "C" __global__ void put(float* x, int i) { x[i] = 1; }
extern "C" __global__ void add(const float* x, float* y) { y[0] = x[0] + 1; }
"""


def launch(i):
    x = cyrt.zeros(100)
    cyrt.Kernel(SOURCE, "put")[1, 1](x, i)
    return x
'''


@pytest.fixture
def check(pytester, monkeypatch):
    """Run pytest on a file of tests, in a process of its own."""
    for name in ("CYRT_CHECK", "CYRT_GRAPHS", "CYRT_LAUNCH_BLOCKING", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)

    def run(tests, *options):
        pytester.makepyfile(test_kernels=KERNELS + tests)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)

    return run


def test_the_entry_point_is_installed():
    (found,) = importlib.metadata.entry_points(group="pytest11", value="pytest_cyrt")
    assert found.name == "cyrt"


LEFT = """
def test_before():
    assert launch(99).sum() == 1

def test_writes_past_the_end():
    launch(100)             # nothing waits for it

def test_after():
    assert launch(99).sum() == 1
"""


def test_a_fault_that_nothing_waits_for_fails_its_test(check):
    done = check(LEFT, "--cyrt-check", "-v")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(
        [
            "*emulated device, in checking mode*",
            "*test_before PASSED*",
            "*test_writes_past_the_end FAILED*",
            "*test_after PASSED*",
            "*kernel put: write of 4 bytes*0 bytes past the end*",
            "*block (0,0,0), thread (0,0,0), *",
            GONE,
            "*inside pytest.raises, and calls cyrt.Device().reset() afterwards*",
            "FAILED *kernel put: w*",
        ]
    )


def test_it_works_with_xdist(check):
    pytest.importorskip("xdist", reason="pytest-xdist, whose workers are tested, is missing")
    done = check(LEFT, "--cyrt-check", "-n", "2")
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["*kernel put: *0 bytes past the end of*", GONE])


def test_a_fault_that_the_test_has_seen(check):
    """The test's own error is shown with its traceback, and the report behind it. Only a test that
    resets the device has dealt with the fault."""
    done = check(
        """
def test_raises():
    launch(100).numpy()

def test_catches():
    with pytest.raises(cyrt.CudaError):
        launch(100).numpy()

def test_skips():
    launch(100)
    pytest.skip("too late")

def test_resets():
    with pytest.raises(cyrt.CudaError):
        launch(100).numpy()
    cyrt.Device().reset()
""",
        "--cyrt-check",
    )
    done.assert_outcomes(passed=1, failed=3)
    done.stdout.fnmatch_lines(
        [">   *launch(100).numpy()", "*CUDA_ERROR_ILLEGAL_ADDRESS*", "*Captured*cyrt call*", GONE]
    )


def test_objects_of_wider_fixtures_are_gone(check):
    done = check(
        """
@pytest.fixture(scope="module")
def shared():
    return cyrt.ones(3)

def test_faults(shared):
    launch(100)

def test_uses_it(shared):
    shared + 1
""",
        "--cyrt-check",
    )
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines([GONE, "*RuntimeError: *context of device 0 that was reset*"])


def test_kernels_of_modules_are_loaded_again(check):
    """One that has variables is refused, since their values are gone."""
    done = check(
        """
put = cyrt.Kernel(SOURCE, "put")
of_variable = cyrt.Kernel(
    "__constant__ float c = 1; __global__ void k(float* x) { x[0] = c; }", "k"
)

def test_faults():
    of_variable[1, 1](cyrt.zeros(1))
    put[1, 1](cyrt.zeros(100), 100)

def test_loads_again():
    x = cyrt.zeros(100)
    for _ in range(3):
        put[1, 1](x, 7)
    assert x[7] == 1 and put.registers > 0
    with pytest.raises(RuntimeError, match=r"the values of its variables .c. are gone"):
        of_variable[1, 1](x)
""",
        "--cyrt-check",
    )
    done.assert_outcomes(passed=1, failed=1)


def test_faults_of_fixtures(check):
    done = check(
        """
@pytest.fixture
def before():
    launch(100)

@pytest.fixture
def behind():
    yield
    launch(100)

def test_one(before):
    pass

def test_two(behind):
    pass

def test_three():
    assert launch(1).sum() == 1
""",
        "--cyrt-check",
        "-v",
    )
    done.assert_outcomes(passed=2, errors=2)
    done.stdout.fnmatch_lines(
        ["*test_one ERROR*", "*test_two PASSED*", "*test_two ERROR*", "*test_three PASSED*"]
    )


def test_checking_mode_is_set_before_conftest_files_are_read(check, pytester):
    pytester.makeconftest("import cyrt\nzeros = cyrt.zeros(1)\n")
    done = check(
        """
def test_reads_what_nobody_wrote():
    cyrt.Kernel(SOURCE, "add")[1, 1](cyrt.empty(1), cyrt.empty(1))
""",
        "--cyrt-check",
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        ["*kernel add: *(argument 1 (const float* x), 4 bytes at *nobody has written*"]
    )


def test_a_refused_launch_fails_its_test_and_resets_nothing(check):
    done = check(
        """
import ctypes

from cyrt.driver import table


@pytest.fixture(scope="module")
def shared():
    return cyrt.ones(3)

@pytest.fixture
def refused():
    cyrt.synchronize()
    refuse = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)
    address = ctypes.cast(refuse, ctypes.c_void_p).value
    names = "cuGraphLaunch", "cuLaunchKernel", "cuLaunchKernelEx"
    before = [table.replace(name, address) for name in names]
    yield
    for name, function in zip(names, before):
        table.replace(name, function)

def test_refused(shared, refused):
    _ = shared + 1

def test_uses_it(shared):
    assert (shared + 1).sum() == 6
""",
        "--cyrt-check",
    )
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*CUDA_ERROR_INVALID_VALUE*"])
    assert "reset device" not in done.stdout.str()


def test_a_gpu_is_no_checking_device(check, monkeypatch):
    monkeypatch.setenv("CYRT_DEVICE", "cuda")
    done = check("def test_nothing(): pass\n", "--cyrt-check")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*--cyrt-check runs kernels on the emulated device*"])


def test_without_the_option_cyrt_is_not_imported(check, pytester):
    pytester.makeconftest(
        """
import sys

def pytest_unconfigure():
    print("imported:", "cyrt" in sys.modules, "pytest_cyrt" in sys.modules)
"""
    )
    pytester.makepyfile(test_other="def test_nothing(): pass\n")
    done = pytester.runpytest_subprocess("-s")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["*imported: False True*"])
