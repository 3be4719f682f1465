"""The bindings of cuDNN: against a stand-in for its frontend."""

from __future__ import annotations

import threading
import weakref
from types import SimpleNamespace

import pytest
from standin_cudnn import Frontend

import cyrt
from cyrt.libs import cudnn


@pytest.fixture
def standin(monkeypatch):
    monkeypatch.setattr(cudnn, "_handles", cudnn.Handles())
    return Frontend()


@pytest.fixture
def library(standin):
    return cudnn.Cudnn(standin)


def problem(**options):
    wanted = {
        "kind": cudnn.FORWARD,
        "dtype": "float32",
        "image": cudnn.Tensor((1, 4, 5, 5), (100, 1, 20, 4)),
        "filter": cudnn.Tensor((8, 4, 3, 3), (36, 1, 12, 4)),
        "result": cudnn.Tensor((1, 8, 3, 3), (72, 1, 24, 8)),
        "stride": (1, 1),
        "low": (0, 0),
        "high": (0, 0),
        "dilation": (1, 1),
        **options,
    }
    return cudnn.Problem(**wanted)


def convolution(library, **options):
    order = cudnn.RESULT, cudnn.IMAGE, cudnn.FILTER
    return cudnn.Convolution(library, 0, 0, problem(**options), order, most_workspace=1 << 20)


def test_versions_are_told(standin):
    opened, reason = cudnn.open_frontend(standin)
    assert (opened.version, opened.dotted, reason) == (91900, "9.19.0", "")


@pytest.mark.parametrize(
    ("frontend", "version", "reason"),
    [
        ("1.17.0", 91900, "nvidia-cudnn-frontend 1.17.0 is too old; 1.18 or newer is needed"),
        ("1.18.0", 80907, "cuDNN 8.9.7 is too old; 9.0 or newer is needed"),
        ("1.18.0", None, "cuDNN cannot be opened: Unable to find symbol cudnnGetVersion"),
    ],
)
def test_what_is_too_old_or_absent_is_not_used(standin, frontend, version, reason):
    standin.__version__, standin.version = frontend, version
    assert cudnn.open_frontend(standin) == (None, reason)


def test_another_module_of_that_name():
    opened, reason = cudnn.open_frontend(SimpleNamespace())
    assert opened is None
    assert "an unknown version is too old" in reason


@pytest.mark.parametrize(
    "error",
    [
        ImportError("no module named cudnn"),
        AssertionError(),
        OSError("libcudnn.so.9: cannot open shared object file"),
        AttributeError("module 'cudnn._compiled_module' has no attribute 'pygraph'"),
    ],
)
def test_no_frontend(monkeypatch, error):
    from cuda import pathfinder

    def fail(name):
        raise error

    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", lambda name: None)
    monkeypatch.setattr(cudnn.importlib, "import_module", fail)
    opened, reason = cudnn.find.__wrapped__()
    assert opened is None
    assert reason.startswith("cuDNN is not found: ")


def test_the_runtime_is_loaded_before_the_frontend(monkeypatch, standin):
    from cuda import pathfinder

    loaded = []
    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", loaded.append)
    monkeypatch.setattr(
        cudnn.importlib, "import_module", lambda name: loaded.append(name + ".py") or standin
    )
    opened, _ = cudnn.find.__wrapped__()
    assert opened.frontend is standin
    assert loaded == ["cudart", "cudnn", "cudnn.py"]


def test_each_thread_has_a_handle_and_ends_it(library, standin):
    convolution(library)
    convolution(library)
    assert len(standin.streams) == 1
    during = []

    def work():
        convolution(library)
        during.append(len(standin.streams))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert during == [2]
    assert len(standin.streams) == 1


def test_a_handle_that_cannot_be_made(library, standin):
    standin.handle_status = "NOT_INITIALIZED"
    with pytest.raises(cyrt.CudaError) as caught:
        convolution(library)
    assert (caught.value.call, caught.value.code) == ("cudnnCreate", 1001)


@pytest.mark.parametrize(
    "status",
    ["BAD_PARAM", "BAD_PARAM_STREAM_MISMATCH", "NOT_SUPPORTED_SHAPE", "SUBLIBRARY_LOADING_FAILED"],
)
def test_what_the_library_does_not_provide(library, standin, status):
    standin.status = status
    with pytest.raises(cudnn.Unsupported, match=r"float32 convolution.*image \(1, 4, 5, 5\)"):
        convolution(library)


def test_no_plan(library, standin):
    standin.plans = []
    with pytest.raises(cudnn.Unsupported, match="no engine"):
        convolution(library)
    standin.plans = [None, (1, 2 << 20)]
    made = convolution(library)
    with pytest.raises(cudnn.Unsupported, match="no plan of 2: float32 convolution"):
        made.build_first()


@pytest.mark.parametrize(
    ("status", "code"), [("INTERNAL_ERROR", 4000), ("EXECUTION_FAILED_CUDA_DRIVER", 5000)]
)
def test_other_statuses_are_errors_with_shapes_and_types(library, standin, status, code):
    standin.status = status
    with pytest.raises(cyrt.CudaError) as caught:
        convolution(library, activation="relu", bias=1)
    assert (caught.value.name, caught.value.code) == (f"CUDNN_STATUS_{status}", code)
    assert "filter (8, 4, 3, 3)" in str(caught.value)
    assert "bias, relu" in str(caught.value)


def test_no_memory(library, standin):
    standin.status = "INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"
    with pytest.raises(cyrt.OutOfMemoryError, match="DEVICE_ALLOCATION_FAILED"):
        convolution(library)


def test_a_plan_that_cannot_be_built_is_passed_over(library, standin):
    standin.plans = [(1, 0), (1, 0)]
    standin.unbuilt = {0: "CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED"}
    convolution(library).build_first()
    assert standin.built == [1]


def test_no_plan_can_be_built(library, standin):
    """The frontend says "not supported" of each; the status tells whether that is so."""
    standin.plans = [(1, 0), (1, 0)]
    standin.unbuilt = dict.fromkeys(range(2), "CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH")
    with pytest.raises(cudnn.Unsupported, match="no plan of 2"):
        convolution(library).build_first()
    standin.unbuilt[0] = "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"
    made = convolution(library)
    with pytest.raises(cyrt.OutOfMemoryError, match=r"filter \(8, 4, 3, 3\)"):
        made.build_first()
    gone = weakref.ref(made)
    del made
    assert gone() is None, "the error that was raised keeps it alive"


def test_the_plan_of_a_name(library, standin):
    standin.plans = [(1, 0), (1, 0), None]
    made = convolution(library)
    made.build_first("eng1")
    assert standin.built == [1]
    with pytest.raises(cudnn.Unsupported):
        made.build_first("eng7")
