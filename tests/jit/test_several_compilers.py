"""Several NVRTCs and headers in one environment: the driver's version decides."""

from __future__ import annotations

import os
from importlib import metadata

import pytest

from cyrt.jit import headers, nvrtc

LOADED = """
    from cyrt.driver import table

    table.driver_info = lambda: ("libcuda.so.1", {emulated}, {driver})
    {before}
    from cyrt.jit import nvrtc

    source = 'extern "C" __global__ void kernel(int* x) {{ *x = 7; }}'
    done = nvrtc.run(source, "kernel.cu", ["-arch=sm_80"], {{}}, [], cubin=True)
    print(nvrtc.nvrtc_version()[0], done.status, nvrtc.library_path().rpartition("/")[2])
"""


@pytest.fixture
def both():
    """Two wheels of NVRTC: the build requires the one for CUDA 12."""
    found = {}
    for name, major in ("nvidia-cuda-nvrtc-cu12", 12), ("nvidia-cuda-nvrtc", 13):
        try:
            files = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            files = []
        for file in files:
            if file.name == f"libnvrtc.so.{major}":
                found[major] = str(file.locate())
    if found.keys() != {12, 13}:
        pytest.skip("the wheels of NVRTC 12 and 13 are not both installed")
    return found


@pytest.mark.parametrize(
    ("driver", "emulated", "major"),
    [(12080, False, 12), (13000, False, 13), (14010, False, 13), (12080, True, 13)],
)
def test_the_newest_compiler_whose_code_the_driver_loads(python, both, driver, emulated, major):
    done = python(LOADED.format(driver=driver, emulated=emulated, before=""))
    assert done.stdout == f"{major} 0 libnvrtc.so.{major}\n", done.stderr


def test_an_older_compiler_that_another_package_has_loaded_is_not_used(python, both):
    """Else it would depend on the packages that were imported before."""
    loads = f"import ctypes; ctypes.CDLL({both[12]!r})"
    done = python(LOADED.format(driver=13000, emulated=False, before=loads))
    assert done.stdout == "13 0 libnvrtc.so.13\n", done.stderr


@pytest.mark.parametrize(
    ("installed", "driver", "with_headers", "chosen"),
    [
        ([12, 13], 13, [13], 13),
        ([12, 13], 13, [12], 12),  # a compiler and the headers of another one do not fit
        ([12, 13], 13, [], 13),
        ([12, 13], 12, [13], 12),
        ([12, 13], 0, [12, 13], 13),
        ([13, 14], 12, [13], 0),
        ([12], 13, [13], 12),
        ([], 13, [13], 0),
    ],
)
def test_the_compiler_and_the_headers_are_of_one_version(installed, driver, with_headers, chosen):
    assert nvrtc.choose_major(installed, driver, with_headers) == chosen


def test_a_toolkit_has_a_compiler_and_headers(tmp_path, monkeypatch):
    """Beside a wheel of another version; wheels come before a toolkit of their version."""
    pathfinder = pytest.importorskip("cuda.pathfinder")
    wheel, toolkit = tmp_path / "site/nvidia/cuda_nvrtc/lib", tmp_path / "toolkit"
    names = [wheel / "libnvrtc.so.12", *(toolkit / "lib64" / f"libnvrtc.so.{n}" for n in (12, 13))]
    for name in (*names, toolkit / "lib64/libnvrtc.so.13.0.88", toolkit / "include/cuda.h"):
        name.parent.mkdir(parents=True, exist_ok=True)
        name.touch()
    (toolkit / "include/cuda.h").write_text("#define CUDA_VERSION 13000\n")
    monkeypatch.setattr("sys.path", [str(tmp_path / "site")])
    monkeypatch.setenv("CUDA_HOME", str(toolkit))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr(
        pathfinder, "find_nvidia_header_directory", lambda name: str(toolkit / "include")
    )
    headers.include_directories.cache_clear()
    try:
        installed = nvrtc.installed_libraries()
        assert installed[12] == str(names[0])
        assert installed[13] == str(names[2])
        assert headers.are_installed(13)
        assert not headers.are_installed(12)
    finally:
        headers.include_directories.cache_clear()


def test_a_newer_compiler_that_another_package_has_loaded_stays(python, both):
    loads = f"import ctypes; ctypes.CDLL({both[13]!r})"
    done = python(LOADED.format(driver=12080, emulated=False, before=loads))
    assert done.stdout == "13 0 libnvrtc.so.13\n", done.stderr


def test_headers_are_those_of_the_compilers_version(tmp_path, monkeypatch):
    pathfinder = pytest.importorskip("cuda.pathfinder")
    newer, older = tmp_path / "nvidia" / "cu13" / "include", {}
    for folder in (newer, newer / "cccl"):
        folder.mkdir(parents=True)
    for name in ("cuda_runtime", "cuda_cccl", "curand"):
        older[name] = tmp_path / "nvidia" / name / "include"
        older[name].mkdir(parents=True)
    found = {"cudart": newer, "cccl": newer / "cccl", "nvcc": newer, "curand": None}
    monkeypatch.setattr(
        pathfinder, "find_nvidia_header_directory", lambda name: found[name] and str(found[name])
    )
    headers.include_directories.cache_clear()
    try:
        # There is no wheel of "nvcc" for CUDA 12 here: the folder that was found stays.
        assert headers.include_directories(12) == (
            *(str(older["cuda_runtime"]), str(older["cuda_cccl"]), str(newer)),
        )
        assert headers.include_directories(13) == (str(newer), str(newer / "cccl"))
        found.update(cudart=older["cuda_runtime"], cccl=older["cuda_cccl"], nvcc=None)
        headers.include_directories.cache_clear()
        assert headers.include_directories(13) == (str(newer), str(newer / "cccl"))
        found["cudart"] = tmp_path / "toolkit" / "include"
        headers.include_directories.cache_clear()
        assert headers.include_directories(13)[0] == os.fspath(found["cudart"])
    finally:
        headers.include_directories.cache_clear()
