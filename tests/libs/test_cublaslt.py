"""The bindings of cuBLASLt: against a stand-in, and against NVIDIA's header where it is."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
import standin as standins

import cyrt
from cyrt.libs import cublaslt


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return standins.build(tmp_path_factory.mktemp("standin"))


@pytest.fixture
def standin(built):
    built.library.standin_reset()
    yield built
    built.library.standin_reset()


@pytest.fixture
def library(standin):
    return cublaslt.CublasLt(standin.path)


def square(dtype="float32", size=8):
    return cublaslt.Matrix(dtype, size, size, size, False, 0, 16)


def product(library, **options):
    wanted = {"tf32": False, "most_workspace": 1 << 20, **options}
    return cublaslt.Product(library, 0, 0, [square()] * 4, 1, 1, 0, **wanted)


def test_the_version_is_reported(library, standin):
    standin.set(version=130100)
    opened, reason = cublaslt.open_library(standin.path)
    assert (opened.version, opened.dotted, reason) == (130100, "13.1.0", "")


def test_a_version_that_is_too_old_is_not_used(standin):
    standin.set(version=111103)
    opened, reason = cublaslt.open_library(standin.path)
    assert opened is None
    assert reason == "cuBLASLt 11.11.3 is too old; 12.0 or newer is needed"


def test_a_file_that_is_no_library(tmp_path):
    path = tmp_path / "libcublasLt.so"
    path.write_text("no library")
    opened, reason = cublaslt.open_library(str(path))
    assert opened is None
    assert "cannot be opened" in reason


def test_a_library_without_the_functions(tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source = tmp_path / "empty.c"
    source.write_text("unsigned long cublasLtGetVersion(void) { return 130000; }")
    target = tmp_path / "libempty.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", target, source], check=True)
    opened, reason = cublaslt.open_library(str(target))
    assert opened is None
    assert "cublasLt" in reason


@pytest.mark.parametrize("status", [1, 8, 11, 13, 14])
def test_other_statuses_are_errors_with_shapes_and_types(library, standin, status):
    standin.set(heuristic=status)
    with pytest.raises(cyrt.CudaError) as caught:
        product(library)
    assert (caught.value.call, caught.value.code) == ("cublasLtMatmulAlgoGetHeuristic", status)
    assert caught.value.name.startswith("CUBLAS_STATUS")
    assert "A float32 (8, 8), step 8" in str(caught.value)
    standin.set(matmul=status)
    with pytest.raises(cyrt.CudaError, match="cublasLtMatmul failed") as caught:
        product(library)(0, (16, 32, 48))
    assert caught.value.code == status
    if status == 13:
        assert "the function failed to launch on the GPU" in str(caught.value)


def test_out_of_memory_is_one(library, standin):
    standin.set(heuristic=3)
    with pytest.raises(cyrt.OutOfMemoryError, match="CUBLAS_STATUS_ALLOC_FAILED"):
        product(library)


@pytest.mark.parametrize("options", [{"heuristic": 15}, {"heuristic": 7}, {"algorithms": 0}])
def test_what_the_library_does_not_provide(library, standin, options):
    standin.set(**options)
    with pytest.raises(cublaslt.Unsupported, match="float32"):
        product(library)


def test_a_matrix_that_is_refused(library):
    narrow = cublaslt.Matrix("float32", 8, 8, 4, False, 0, 16)
    with pytest.raises(cublaslt.Unsupported, match="MatrixLayoutCreate.*INVALID_VALUE"):
        cublaslt.Product(library, 0, 0, [narrow] * 4, 1, 1, 0, tf32=False, most_workspace=1 << 20)


def test_what_is_preferred(library, standin):
    matrices = [
        cublaslt.Matrix("float32", 8, 8, 8, False, 0, alignment) for alignment in (4, 16, 8, 8)
    ]
    cublaslt.Product(library, 0, 0, matrices, 1, 1, 0, tf32=False, most_workspace=32 << 20)
    assert standin.preference == [32 << 20, 2, 4, 16, 8, 8]


def test_objects_are_destroyed(library, standin):
    before = standin.live
    made = [product(library) for _ in range(5)]
    assert standin.live == before + 5 * 6
    del made
    assert standin.live == before
    standin.set(heuristic=15)
    with pytest.raises(cublaslt.Unsupported):
        product(library)
    assert standin.live == before


def test_each_thread_has_a_handle_and_ends_it(library, standin):
    product(library)
    before = standin.handles
    product(library)
    assert standin.handles == before
    during = []

    def work():
        product(library)
        during.append(standin.handles)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert during == [before + 1]
    assert standin.handles == before


def test_a_handle_that_cannot_be_made(library, standin):
    standin.set(create=1)
    failures = []

    def work():
        try:
            product(library)
        except cyrt.CudaError as error:
            failures.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(failures) == 1
    assert "cublasLtCreate" in failures[0]


CONSTANTS = {
    "INVALID_VALUE": "CUBLAS_STATUS_INVALID_VALUE",
    "NOT_SUPPORTED": "CUBLAS_STATUS_NOT_SUPPORTED",
    "OP_N": "CUBLAS_OP_N",
    "OP_T": "CUBLAS_OP_T",
    "LAYOUT_BATCH_COUNT": "CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT",
    "LAYOUT_STRIDED_BATCH_OFFSET": "CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET",
    "DESC_TRANSA": "CUBLASLT_MATMUL_DESC_TRANSA",
    "DESC_TRANSB": "CUBLASLT_MATMUL_DESC_TRANSB",
    "PREF_MAX_WORKSPACE_BYTES": "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES",
    "PREF_REDUCTION_SCHEME_MASK": "CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK",
    "REDUCTION_SCHEME_COMPUTE_TYPE": "CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE",
    "COMPUTE_32F": "CUBLAS_COMPUTE_32F",
    "COMPUTE_32F_FAST_TF32": "CUBLAS_COMPUTE_32F_FAST_TF32",
    "COMPUTE_64F": "CUBLAS_COMPUTE_64F",
    "COMPUTE_32I": "CUBLAS_COMPUTE_32I",
}
TYPE_NAMES = {
    "float16": "CUDA_R_16F",
    "bfloat16": "CUDA_R_16BF",
    "float32": "CUDA_R_32F",
    "float64": "CUDA_R_64F",
    "complex64": "CUDA_C_32F",
    "complex128": "CUDA_C_64F",
    "int8": "CUDA_R_8I",
    "int32": "CUDA_R_32I",
}


def test_values_and_sizes_are_the_headers(tmp_path):
    from cuda import pathfinder

    from cyrt.jit.headers import include_directories

    try:
        place = pathfinder.find_nvidia_header_directory("cublas")
    except (AttributeError, RuntimeError):
        place = None
    folders = [str(each) for each in include_directories()]
    compiler = shutil.which("cc")
    if place is None or not (Path(place) / "cublasLt.h").exists() or compiler is None:
        pytest.skip("the header cublasLt.h (nvidia-cublas) or a C compiler is not installed")
    expressions = {
        **{name: (symbol, getattr(cublaslt, name)) for name, symbol in CONSTANTS.items()},
        **{
            f"alignment {i}": (
                f"CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_{'ABCD'[i]}_BYTES",
                cublaslt.PREF_MIN_ALIGNMENT_BYTES[i],
            )
            for i in range(4)
        },
        **{name: (TYPE_NAMES[name], value) for name, value in cublaslt.DATA_TYPES.items()},
        "success": ("CUBLAS_STATUS_SUCCESS", 0),
        "no memory": ("CUBLAS_STATUS_ALLOC_FAILED", cublaslt.CublasLt.no_memory),
        "algo": ("sizeof(cublasLtMatmulAlgo_t)", ctypes.sizeof(cublaslt.Algo)),
        "result": (
            "sizeof(cublasLtMatmulHeuristicResult_t)",
            ctypes.sizeof(cublaslt.HeuristicResult),
        ),
        **{
            f"offset of {theirs}": (
                f"offsetof(cublasLtMatmulHeuristicResult_t, {theirs})",
                getattr(cublaslt.HeuristicResult, ours).offset,
            )
            for ours, theirs in {
                "algo": "algo",
                "state": "state",
                "workspace": "workspaceSize",
                "waves": "wavesCount",
            }.items()
        },
    }
    lines = [f'printf("%lld\\n", (long long)({symbol}));' for symbol, _ in expressions.values()]
    source = tmp_path / "header.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdio.h>\n#include <cublasLt.h>\n"
        f"int main(void) {{ {' '.join(lines)} return 0; }}\n"
    )
    options = [f"-I{each}" for each in (place, *folders)]
    program = tmp_path / "header"
    subprocess.run([compiler, *options, "-o", program, source], check=True)
    found = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    wanted = {name: str(value) for name, (_, value) in expressions.items()}
    assert dict(zip(expressions, found, strict=True)) == wanted


def test_every_function_is_the_headers():
    """The number of arguments of each function that the bindings declare."""
    from cuda import pathfinder

    try:
        place = pathfinder.find_nvidia_header_directory("cublas")
    except (AttributeError, RuntimeError):
        place = None
    if place is None or not (Path(place) / "cublasLt.h").exists():
        pytest.skip("the header cublasLt.h (nvidia-cublas) is not installed")
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", (Path(place) / "cublasLt.h").read_text(), flags=re.S)
    for name, types in cublaslt._SIGNATURES.items():
        arguments = re.search(rf"\b{name}\(([^)]*)\)", text)[1]
        assert len(arguments.split(",")) == len(types), name


def test_nothing_is_said_at_exit(python):
    """Objects of the library that live longer than its module."""
    done = python(
        """
        import os
        from cyrt.libs import cublaslt

        made = cublaslt.Product.__new__(cublaslt.Product)
        made._objects = []
        handle = cublaslt.Handle(1, None)
        os.kept = cublaslt, made, handle  # modules that were imported later are emptied first
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
