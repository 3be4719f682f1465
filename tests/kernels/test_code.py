"""Code as a file; compiler options, headers, macros; code for another device."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt
from cyrt.jit import compiler
from cyrt.runtime import image

SOURCE = """
#include "part.cuh"
extern "C" __global__ void k(int* out) { *out = PART + EXTRA; }
"""
PLAIN = 'extern "C" __global__ void k(int* out) { *out = 4; }'


def run(kernel):
    out, result = cyrt.Buffer(4), np.zeros(1, np.int32)
    kernel[1, 1](out)
    out.copy_to(result)
    return result[0]


@pytest.fixture(scope="module")
def ptx():
    return compiler.compile(PLAIN, arch="compute_75").code


def test_a_source_file_includes_its_neighbours(tmp_path):
    path = tmp_path / "kernel of mine.cu"
    path.write_text(SOURCE)
    (tmp_path / "part.cuh").write_text("#define PART 40")
    assert run(cyrt.Kernel(path, "k", define={"EXTRA": 2})) == 42
    assert run(cyrt.Module(path, options=["-DEXTRA=3"])["k"]) == 43


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "broken.cu"
    path.write_text("nonsense;")
    with pytest.raises(cyrt.CompileError, match=r"broken\.cu\(1\)"):
        cyrt.Module(path)


@pytest.mark.parametrize("name", ["code.ptx", "code.cu", "code"])
def test_a_file_is_told_by_its_content(tmp_path, ptx, name):
    path = tmp_path / name
    path.write_bytes(b"// a comment\n/* another */\n" + ptx)
    assert run(cyrt.Kernel(path, "k")) == 4


def test_headers_options_and_macros():
    headers = {"part.cuh": "#define PART (FAST ? N * 2 : 0)"}
    kernel = cyrt.Kernel(
        SOURCE,
        "k",
        headers=headers,
        define={"FAST": True, "N": 16, "EXTRA": 1},
        options=["-lineinfo"],
    )
    assert run(kernel) == 33
    other = cyrt.Kernel(SOURCE, "k", headers=headers, define={"FAST": False, "N": 16, "EXTRA": 1})
    assert run(other) == 1


def test_what_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.cu"):
        cyrt.Kernel(tmp_path / "absent.cu", "k")
    (tmp_path / "latin.cu").write_bytes(b"// \xe9t\xe9\n")
    with pytest.raises(ValueError, match=r"latin\.cu is neither PTX, cubin nor fatbin, and"):
        cyrt.Module(tmp_path / "latin.cu")
    with pytest.raises(ValueError, match=r"got 'kernels/mine\.cu'; a file is given as a pathlib"):
        cyrt.Module("kernels/mine.cu")


@pytest.mark.parametrize(
    ("how", "named"),
    [
        ({"options": ["-G"]}, "options="),
        ({"headers": {"a.h": ""}}, "headers="),
        ({"define": {"A": 1}, "options": ["-G"]}, "options=, define="),
    ],
)
def test_compiled_code_takes_no_options(ptx, tmp_path, how, named):
    path = tmp_path / "code.ptx"
    path.write_bytes(ptx)
    for code in (ptx, ptx.decode(), path):
        with pytest.raises(ValueError, match=f"^{named}: for source only, and the code is ptx"):
            cyrt.Module(code, **how)


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({"options": "-G"}, "options: expected a sequence of str, got the str '-G'"),
        ({"names": "k"}, "names: expected a sequence"),
        ({"define": ["A"]}, "define: expected a mapping by name, got list"),
        ({"headers": "a.h"}, "headers: expected a mapping by name, got str"),
    ],
)
def test_arguments_of_another_type(how, match):
    with pytest.raises(TypeError, match=match):
        cyrt.Module(PLAIN, **how)


def test_template_that_does_not_instantiate():
    source = "template <class T> __global__ void k(T* x) { x->member(); }"
    with pytest.raises(cyrt.CompileError, match=r"(?s)pointer-to-class.*instantiation of.*T=int"):
        cyrt.Kernel(source, "k<int>")
    with pytest.raises(cyrt.CompileError, match=r"'kk<int>' is not in .*its kernels: k<…>"):
        cyrt.Kernel(source, "kk<int>")


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_90a", "sm_120", "compute_75"])
def test_target_of_code(arch):
    code = compiler.compile(PLAIN, arch=arch).code
    assert image.kind(code) == ("ptx" if arch.startswith("c") else "cubin")
    assert image.target(code) == int(arch.strip("smcoputea_"))
    assert image.target(code[:30]) is None or arch.startswith("c")


@pytest.mark.parametrize(
    ("arch", "capability", "fits"),
    [
        ("sm_90", (9, 0), True),
        ("sm_80", (8, 9), True),
        ("sm_89", (8, 6), False),
        ("sm_90", (10, 0), False),
        ("compute_90", (12, 0), True),
        ("compute_120", (9, 0), False),
    ],
)
def test_which_device_code_is_for(arch, capability, fits):
    message = image.misfit(compiler.compile(PLAIN, arch=arch).code, capability, emulated=False)
    assert (message == "") == fits
    if not fits:
        assert (
            f"for sm_{arch.rpartition('_')[2]}, and the device has compute capability "
            f"{capability[0]}.{capability[1]}: compile it for" in message
        )


def test_cubin_for_another_device(emulated):
    code = compiler.compile(PLAIN, arch="sm_75").code
    expected = (
        "the emulated device runs PTX only: give source or PTX"
        if emulated
        else r"a cubin for sm_75, and the device has .* give source or PTX"
    )
    with pytest.raises(cyrt.CompileError, match=expected):
        cyrt.Module(code)


def test_ptx_for_a_newer_device(ptx):
    newer = ptx.replace(b".target sm_75", b".target sm_999")
    with pytest.raises(cyrt.CompileError, match="PTX for sm_999, and the device has"):
        cyrt.Module(newer)


def test_many_leading_comments_are_no_trouble():
    """Telling PTX from source takes time in proportion to the text."""
    assert run(cyrt.Kernel("/**/" * 200 + PLAIN, "k")) == 4


@pytest.mark.parametrize("arch", ["compute_90", "sm_90", "sm_100"])
def test_the_block_that_a_kernel_requires_is_read_from_its_code(arch):
    try:
        code = compiler.compile(
            """
            extern "C" {
            __global__ void __block_size__((64, 2, 1)) flat(int* x) { *x = 1; }
            __global__ void __block_size__((32, 1, 1), (2, 1, 1)) wide(int* x) { *x = 1; }
            __global__ void __launch_bounds__(64) bounded(int* x) { *x = 1; }
            __global__ void any(int* x) { *x = 1; }
            }
            """,
            arch=arch,
        ).code
    except cyrt.CompileError:
        pytest.skip("this NVRTC has no __block_size__")
    found = image.required_blocks(code)
    assert {name: each.size for name, each in found.items()} == {
        "flat": (64, 2, 1),
        "wide": (32, 1, 1),
    }
    assert found["wide"].counts_clusters
    assert image.required_blocks(code[:200]) == {}
    assert image.required_blocks(code[: len(code) // 2]) in ({}, found)
