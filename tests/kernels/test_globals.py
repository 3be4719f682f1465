"""Variables of a module: found by name, and ordered with its kernels."""

from __future__ import annotations

import gc
import struct

import numpy as np
import pytest

import cyrt
from cyrt.jit import compiler
from cyrt.runtime import image

SOURCE = """
__device__ int counter = 5;
namespace ns {
    __device__ float only = 1.5f;
    __device__ int twice = 1;
    namespace deep { __device__ int twice = 2; }
}
template <class T> __device__ T table[4];
static __device__ int hidden = 7;
__global__ void bump(int by) { counter += by; table<int>[1] = hidden; }
__global__ void peek(const int* from, int* out) { *out = *from; }
"""
CONSTANT = """
__constant__ int factor[2] = {3, 4};
extern "C" __global__ void scale(int* out) { *out = 10 * factor[1]; }
"""
only_graphs = pytest.mark.skipif(
    "not __import__('cyrt').settings.get('CYRT_GRAPHS')",
    reason="looks into batches; CYRT_GRAPHS=0 has none",
)


@pytest.fixture
def module():
    return cyrt.Module(SOURCE, ["bump", "peek", "&table<int>"])


@pytest.fixture
def constant():
    return cyrt.Module(CONSTANT)


@pytest.fixture
def peek():
    """The kernel of another module, which knows nothing of the variable's."""
    return cyrt.Kernel("__global__ void peek(const int* from, int* out) { *out = *from; }", "peek")


def ints(*values):
    buffer = cyrt.Buffer(4 * len(values))
    buffer.copy_from(np.array(values, np.int32))
    return buffer


def read(buffer, stream=None):
    out = np.zeros(buffer.nbytes // 4, np.int32)
    buffer.copy_to(out, stream=stream)
    return out.tolist()


@pytest.mark.parametrize(
    ("name", "nbytes"),
    [
        ("counter", 4),
        ("ns::only", 4),
        ("only", 4),
        ("ns::deep::twice", 4),
        ("deep::twice", 4),
        ("table<int>", 16),
        ("hidden", 4),
        ("_ZN2ns4onlyE", 4),
    ],
)
def test_names(module, name, nbytes):
    assert module.get_global(name).nbytes == nbytes


def test_a_name_that_is_none_or_several(module):
    with pytest.raises(KeyError, match=r"no variable 'absent'; it has .*counter.*ns::only"):
        module.get_global("absent")
    with pytest.raises(KeyError, match=r"several variables 'twice': .*ns::deep::twice"):
        cyrt.Module(
            "namespace a { __device__ int twice; }"
            "namespace ns { namespace deep { __device__ int twice; } }"
        ).get_global("twice")
    with pytest.raises(KeyError, match="it has none"):
        cyrt.Module('extern "C" __global__ void k() {}').get_global("x")


@pytest.mark.parametrize("arch", ["compute_75", "sm_75", "sm_90", "sm_120"])
def test_variables_are_read_from_code(arch):
    code = compiler.compile(
        SOURCE
        + CONSTANT
        + """
        #include <cstdio>
        extern "C" __global__ void own(float* x) { printf("%f", *x); *x = sinf(*x); }
    """,
        ["&table<int>"],
        arch=arch,
    ).code
    found = image.variables(code)
    assert found.pop("factor") is True
    assert set(found.values()) == {False}
    assert {"counter", "_ZN2ns4onlyE", "_ZN2ns4deep5twiceE"} <= set(found)
    assert not [n for n in found if n.startswith(("$str", "__cudart", ".nv"))]
    assert image.variables(code[:100]) in ({}, None)


@only_graphs
def test_views_are_ordered_inside_a_batch(module, peek):
    """Kernel, copy, other module's kernel, kernel: each after the one before, in one batch."""
    with cyrt.stream(cyrt.Stream()):
        view, out, value = module.get_global("counter"), ints(0), ints(40)
        encoder = cyrt.current_encoder()
        encoder.commit()
        commits = encoder.stats()["commits"]
        module["bump"][1, 1](1)
        view.copy_from(value)
        peek[1, 1](view, out)
        module["bump"][1, 1](2)
        assert encoder.num_ops == 4
        encoder.commit()
        assert encoder.stats()["commits"] == commits + 1
        assert {(0, 1), (1, 2), (2, 3)} <= {edge[:2] for edge in encoder.last_plan().edges}
        assert (read(out), read(view)) == ([40], [42])


@only_graphs
def test_constants_are_ordered_inside_a_batch(constant):
    with cyrt.stream(cyrt.Stream()):
        view, value, outs = constant.get_global("factor"), ints(0, 9), [ints(0), ints(0)]
        encoder = cyrt.current_encoder()
        encoder.commit()
        constant["scale"][1, 1](outs[0])
        view.copy_from(value)
        constant["scale"][1, 1](outs[1])
        encoder.commit()
        assert {(0, 1), (1, 2)} == {edge[:2] for edge in encoder.last_plan().edges}
        assert [read(out) for out in outs] == [[40], [90]]


def test_a_constant_is_assigned_as_an_array(constant):
    """No kernel writes it: that is a fault on the emulated device."""
    factor = cyrt.asarray(constant.get_global("factor"), dtype="int32")
    out = ints(0)
    for value, found in (
        (cyrt.asarray([1, 2], dtype="int32"), 20),
        (cyrt.asarray([3.5, 4.5]), 40),
        ([5, 6], 60),
        (cyrt.asarray(7), 70),
        (8, 80),
        ([9, 1], 10),
        (factor[::-1], 90),
    ):
        factor[...] = value
        constant["scale"][1, 1](out)
        assert read(out) == [found]
    factor.fill(1)
    factor[1:] = 11
    assert factor.tolist() == [1, 11]


@only_graphs
def test_code_that_hides_its_variables_is_ordered(only_emulated, peek, tmp_path):
    """A fatbin, whose parts may be compressed: kernels may write, symbols are not known."""
    ptx = compiler.compile(SOURCE, ["bump", "peek"], arch="compute_75").code + b"\0"
    ptx += bytes(-len(ptx) % 8)
    entry = struct.pack("<HHIQIIHHIIIQQQ", 1, 0x101, 64, len(ptx), 0, 0, 0, 8, 75, 0, 0, 17, 0, 0)
    path = tmp_path / "code"
    path.write_bytes(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 64 + len(ptx)) + entry + ptx)
    module = cyrt.Module(path)
    view, out = module.get_global("counter"), ints(0)
    with cyrt.stream(cyrt.Stream()):
        encoder = cyrt.current_encoder()
        module["bump"][1, 1](1)
        peek[1, 1](view, out)
        module["bump"][1, 1](1)
        encoder.commit()
        assert {(0, 1), (1, 2)} <= {edge[:2] for edge in encoder.last_plan().edges}
        assert (read(out), read(view)) == ([6], [7])
    assert module.get_global("_ZN2ns4onlyE").nbytes == 4
    with pytest.raises(KeyError, match="no variable 'only'; a fatbin's go by their symbols"):
        module.get_global("only")


def test_view_of_a_view_is_ordered(module):
    view = module.get_global("table<int>")[4:8]
    view.fill(0)
    module["bump"][1, 1](0)
    assert read(view) == [7]


def test_views_are_ordered_across_streams(module):
    second = cyrt.Stream()
    view = module.get_global("counter")
    with cyrt.stream(cyrt.Stream()):
        first = cyrt.current_encoder()
        module["bump"][1, 1](10)
        assert read(view, stream=second) == [15]  # though it was recorded only
        module["bump"][1, 1](20)
        view.fill(0, stream=second)
        assert first.num_ops == 0
        module["bump"][1, 1](6)  # waits for the fill
        assert read(view) == [6]


def test_constants_are_written_after_earlier_readers(constant):
    """A kernel recorded before the write, on another stream, sees what was there before."""
    out, after = ints(0), ints(0)
    with cyrt.stream(cyrt.Stream()):
        first = cyrt.current_encoder()
        constant["scale"][1, 1](out)
        with cyrt.stream(cyrt.Stream()):
            constant.get_global("factor").copy_from(np.array([0, 6], np.int32))
            constant["scale"][1, 1](after)
            assert read(after) == [60]
        assert first.num_ops == 0
        assert read(out) == [40]


@only_graphs
def test_readers_of_constants_are_not_ordered_among_each_other(constant):
    with cyrt.stream(cyrt.Stream()):
        outs = [ints(0) for _ in range(3)]
        encoder = cyrt.current_encoder()
        encoder.commit()
        for out in outs:
            constant["scale"][1, 1](out)
        encoder.commit()
        assert encoder.last_plan().edges == []


def test_fill_and_host_copies(module):
    view = module.get_global("counter")
    view.fill(np.int32(-4))
    module["bump"][1, 1](1)
    assert read(view) == [-3]
    view.copy_from(np.array([8], np.int32))
    module["bump"][1, 1](1)
    assert read(view) == [9]
    with pytest.raises(ValueError, match="8"):
        view.copy_from(np.zeros(2, np.int32))


def test_a_view_keeps_the_code_loaded():
    def view_of_a_lost_module():
        module = cyrt.Module("__device__ int x = 11;")
        return module.get_global("x")[0:4]

    view = view_of_a_lost_module()
    gc.collect()
    cyrt.synchronize()
    cyrt.trim_memory()
    assert read(view) == [11]


@pytest.mark.parametrize("mode", [{"CYRT_CHECK": "1"}, {"CYRT_POOL": "0"}, {}])
def test_arrays_without_elements_are_no_variables(python, mode):
    done = python(
        """
        import cyrt
        x = cyrt.zeros((0, 3))
        x[...] = 1
        x[:] = cyrt.ones((0, 3))
        print((x + 1).numpy().shape)
        """,
        CYRT_DEVICE="emulated",
        **mode,
    )
    assert done.stdout == "(0, 3)\n", done.stderr
