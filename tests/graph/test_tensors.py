"""Tensors of libraries that offer DLPack's C exchange API, as arguments of kernels."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
import weakref
from contextvars import Context
from ctypes import c_uint, c_void_p

import numpy as np
import producers
import pytest
from gates import Gate
from outside import Library, edges, only_batches
from producers import CupyArray, CupyModule, Tensor, capsule_of, functions

import cyrt
from cyrt import tape

N = 256
COMPLEX = r"""
extern "C" __global__ void pairs(float2* x, int n) {
    if (threadIdx.x < n) x[threadIdx.x].x += 1.0f;
}
"""

only_replay = pytest.mark.skipif(
    "not __import__('cyrt').settings.get('CYRT_GRAPHS')"
    " or __import__('cyrt').settings.get('CYRT_REPLAY') == '0'"
    " or __import__('cyrt').settings.get('CYRT_MAX_OPS_PER_GRAPH') == 1"
    " or __import__('cyrt').settings.get('CYRT_LAUNCH_BLOCKING')",
    reason="looks at batches that are replayed",
)

only_calls = pytest.mark.skipif(
    "__import__('cyrt').settings.get('CYRT_REPLAY') == 'verify'",
    reason="looks at calls that are not recorded",
)


@pytest.fixture(scope="module")
def library():
    return Library()


@pytest.fixture
def tensor(library):
    return Tensor(library)


@pytest.fixture
def side():
    """A stream of the library's own, which is its current one."""
    stream = cyrt.Stream()
    Tensor.stream = stream.handle
    yield stream
    Tensor.stream = 0


@pytest.fixture
def calls(replaced):
    """The streams on which kernels are launched, and the pairs of streams that wait."""
    launched, waits = [], []

    def launch(original, function, *arguments):
        launched.append(arguments[7])
        return original(function, *arguments)

    def wait(original, stream, event, flags):
        waits.append(stream)
        return original(stream, event, flags)

    replaced("cuLaunchKernel", [c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p], launch)
    replaced("cuStreamWaitEvent", [c_void_p, c_void_p, c_uint], wait)
    return launched, waits


def test_kernel_goes_to_the_librarys_current_stream(module, library, side, calls):
    launched, waits = calls
    x, y = Tensor(library), Tensor(library)
    module["axpb"][1, N](x, 1.0, 3.0, N)
    launched.clear(), waits.clear()
    for _ in range(3):
        module["add"][1, N](x, x, y, N)
    assert launched == [Tensor.stream] * 3
    assert waits == []
    assert (y.values() == 6).all()


def test_nothing_is_late_in_either_direction(module, library, tensor):
    for i in range(50):
        library.memset(0, tensor.address, 0)
        module["axpb"][1, N](tensor, 1.0, float(i), N)
        assert (tensor.values() == i).all()


@pytest.mark.parametrize("batched", [False, True])
def test_kernel_waits_for_what_the_library_put_on_its_stream(module, library, side, batched):
    """A kernel that waits for the host is before it, on that stream."""
    gate, x = Gate(), Tensor(library, N, "i4")
    y = cyrt.zeros(N, "int32")
    with side:
        gate.write(x, 7, N)
        cyrt.commit()
    timer = gate.open_in(0.05)
    copy = cyrt.Kernel(
        'extern "C" __global__ void copy(const int* x, int* y, int n)'
        "{ if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x]; }",
        "copy",
    )
    if batched:
        with cyrt.batch():
            copy[1, N](x, y, N)
    else:
        copy[1, N](x, y, N)
    assert (y.numpy() == 7).all()
    timer.join()
    assert not gate.expired


@pytest.mark.parametrize("batched", [False, True])
def test_the_library_waits_for_the_kernel(module, library, side, batched):
    gate, x = Gate(), Tensor(library, N, "i4")
    y = cyrt.full(N, 3, "int32")
    if batched:
        with cyrt.batch():
            gate.copy(y, x, N)
    else:
        gate.copy(y, x, N)
    timer = gate.open_in(0.05)
    assert (x.values() == 3).all()
    timer.join()
    assert not gate.expired


def test_own_last_use_on_another_stream_comes_first(module, library, side):
    """The batch used the tensor while the library worked on another stream."""
    gate, x = Gate(), Tensor(library, N, "i4")
    y = cyrt.full(N, 3, "int32")
    with cyrt.batch():
        gate.copy(y, x, N)
    Tensor.stream = 0
    timer = gate.open_in(0.05)
    out = Tensor(library)
    module["add"][1, N](bits(x), bits(x), out, N)
    expected = np.full(N, 3, np.int32).view(np.float32) * 2
    assert (out.values() == expected).all()
    timer.join()


def bits(tensor):
    """The same memory as float32."""
    return cyrt.pointer(tensor.address, tensor.nbytes, owner=tensor)


def test_array_and_tensor_wait_only_where_there_is_something_to_wait_for(
    module, library, side, calls
):
    launched, waits = calls
    x, y, first = cyrt.ones(N), Tensor(library), 0
    for i in range(4):
        module["add"][1, N](x, y, y, N)
        assert launched[-1] == Tensor.stream
        first = len(waits) if i == 0 else first
    assert len(waits) == first
    assert (y.values() == 4).all()
    assert (x + 1).numpy().tolist() == [2] * N


def test_a_launch_asks_once_whether_the_stream_is_captured(module, library, side, replaced):
    asked = []

    def is_capturing(original, stream, status):
        asked.append(stream)
        return original(stream, status)

    x, y = Tensor(library), Tensor(library)
    module["add"][1, N](x, x, y, N)
    # The garbage collector may end another test's objects, and their ends ask, too.
    gc.collect()
    gc.disable()
    try:
        replaced("cuStreamIsCapturing", [c_void_p, c_void_p], is_capturing)
        for _ in range(3):
            module["add"][1, N](x, x, y, N)
    finally:
        gc.enable()
    assert asked == [Tensor.stream] * 3


def test_chosen_stream_is_used(module, library, tensor, calls):
    launched, _ = calls
    with cyrt.Stream() as chosen:
        module["axpb"][1, N](tensor, 1.0, 3.0, N)
    assert 0 not in launched
    assert None not in launched
    assert (tensor.values() == 3).all()
    assert chosen is not None


@pytest.mark.parametrize("end", ["normal", "error"])
def test_recording_refers_to_tensors_until_it_is_launched(module, library, end):
    tensor = Tensor(library)
    references = sys.getrefcount(tensor)
    alive = weakref.ref(tensor)
    out = cyrt.zeros(N)
    with cyrt.batch():
        module["axpb"][1, N](tensor, 1.0, 5.0, N)
        if end == "error":
            with pytest.raises(TypeError, match="argument 2"):
                module["axpb"][1, N](tensor, "5", 5.0, N)
        if not cyrt.settings.get("CYRT_LAUNCH_BLOCKING"):
            assert sys.getrefcount(tensor) >= references
        module["add"][1, N](tensor, tensor, out, N)
        del tensor
        gc.collect()
    assert (out.numpy() == 10).all()
    assert alive() is None


@only_batches
def test_recording_counts_each_use(module, library, tensor):
    before = sys.getrefcount(tensor)
    with cyrt.batch():
        for _ in range(10):
            module["axpb"][1, N](tensor, 1.0, 1.0, N)
        assert sys.getrefcount(tensor) == before + 10
    assert sys.getrefcount(tensor) == before
    assert (tensor.values() == 10).all()


@only_batches
def test_tensor_is_an_operand_like_any_other_inside_a_batch(module, library, tensor):
    other = Tensor(library)
    with cyrt.batch() as encoder:
        encoder.commit()
        module["axpb"][1, N](tensor, 1.0, 1.0, N)  # 0
        module["axpb"][1, N](other, 1.0, 5.0, N)  # 1: elsewhere
        module["axpb"][1, N](tensor, 2.0, 0.0, N)  # 2: after 0
        module["add"][1, N](tensor, other, other, N)  # 3: after 1 and 2
    assert set(edges(encoder)) >= {(0, 2), (2, 3), (1, 3)}
    assert (0, 1) not in edges(encoder)
    assert (other.values() == 7).all()


@only_batches
def test_batch_waits_once_at_each_end(module, library, side, calls):
    _, waits = calls
    x, y = Tensor(library), Tensor(library)
    with cyrt.batch():
        for _ in range(20):
            module["add"][1, N](x, x, y, N)
        assert waits == []
    assert waits.count(Tensor.stream) == 1
    assert len(waits) <= 3


@only_batches
def test_overlapping_tensors_conflict(module, library, tensor):
    part = Tensor(library, 64)
    part.fields["data"] = tensor.address + 128
    with cyrt.batch() as encoder:
        encoder.commit()
        module["axpb"][1, N](tensor, 1.0, 1.0, N)  # 0
        module["axpb"][1, 64](part, 2.0, 0.0, 64)  # 1
        module["axpb"][1, N](tensor, 1.0, 1.0, N)  # 2
    assert {(0, 1), (1, 2)} <= set(edges(encoder))
    expected = np.full(N, 2.0)
    expected[32:96] = 3
    assert (tensor.values() == expected).all()


def test_many_tensors(module, library):
    """More than are kept at once, in one batch."""
    owner = Tensor(library, 4 * 3000)
    out = cyrt.zeros(4)
    with cyrt.batch():
        for i in range(3000):
            part = Tensor.__new__(Tensor)
            part.library, part.nbytes, part.kept = library, 16, owner.kept
            part.address = owner.address
            part.fields = {**owner.fields, "data": owner.address + 16 * i}
            part.kept = (producers.c_int64 * 1)(4)
            part.fields["shape"] = part.kept
            part.__class__ = Part
            module["axpb"][1, 4](part, 1.0, 1.0, 4)
            module["add"][1, 4](out, part, out, 4)
    assert (owner.values() == 1).all()
    assert (out.numpy() == 3000).all()


class Part(Tensor):
    def __del__(self):
        pass


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"requires_grad": True}, ValueError, r"requires a gradient.*pass x.detach\(\)"),
        ({"kind": 1}, TypeError, r"in host memory, which a CUDA .* cyrt.asarray\(\) copies it"),
        ({"index": 99}, ValueError, "lies on CUDA device 99"),
        ({"index": -1}, ValueError, "lies on CUDA device -1"),
        ({"ndim": -1}, ValueError, "a DLPack tensor of -1 dimensions has no shape"),
        ({"ndim": 3, "shape": None}, ValueError, "a DLPack tensor of 3 dimensions"),
        ({"shape": (-1,)}, ValueError, "expected sizes of 0 or more"),
        ({"shape": (1 << 62,)}, ValueError, "more elements than memory can hold"),
        ({"strides": (2,)}, ValueError, "expected a C-contiguous array"),
        ({"strides": (-1,)}, ValueError, "expected a C-contiguous array"),
        ({"strides": (1 << 61,)}, ValueError, "leave the address space"),
        ({"strides": (0,)}, ValueError, "expected an array that can be written"),
        ({"data": 0}, ValueError, "at address 0"),
        ({"offset": 2}, ValueError, "expected an address that is a multiple of 4"),
        ({"bits": 16}, TypeError, "expected an array of float32"),
        ({"code": 10, "bits": 8}, TypeError, "expected an array of float32"),  # float8_e4m3fn
        ({"code": 17, "bits": 4}, TypeError, "expected an array of float32"),  # float4_e2m1fn
        ({"lanes": 2, "bits": 16}, TypeError, "expected an array of float32"),
    ],
)
def test_refused(module, library, tensor, monkeypatch, batched, change, error, text):
    for key, value in change.items():
        if hasattr(Tensor, key):
            monkeypatch.setattr(Tensor, key, value)
        elif isinstance(value, tuple):
            tensor.fields[key] = (producers.c_int64 * 1)(*value)
        else:
            tensor.fields[key] = value

    def refuse():
        with pytest.raises(error, match=f"argument 1 .*{text}"):
            module["axpb"][1, N](tensor, 1.0, 1.0, N)

    if batched:
        with cyrt.batch():
            refuse()
    else:
        refuse()
    monkeypatch.undo()
    fresh = Tensor(library)
    module["axpb"][1, N](fresh, 1.0, 1.0, N)
    assert (fresh.values() == 1).all()


def test_conjugated_tensor_is_refused(library, monkeypatch):
    kernel = cyrt.Kernel(COMPLEX, "pairs")
    tensor = Tensor(library, N, "c8")
    kernel[1, N](tensor, N)
    assert (tensor.values() == 1).all()
    monkeypatch.setattr(Tensor, "conjugated", True)
    with pytest.raises(ValueError, match=r"conjugated.*pass x.resolve_conj\(\)"):
        kernel[1, N](tensor, N)


@pytest.mark.parametrize(
    ("shape", "strides"), [((N,), (2,)), ((1, N), (2 * N, 2)), ((1, 1), (2, 1)), ((), None)]
)
def test_negated_tensor_is_refused(module, library, monkeypatch, shape, strides):
    """It is the imaginary part of a conjugated tensor, whose steps are even."""
    monkeypatch.setattr(Tensor, "negated", True)
    tensor = Tensor(library, shape, strides=strides)
    for use in (
        lambda: module["axpb"][1, N](tensor, 1.0, 1.0, N),
        lambda: cyrt.asarray(tensor),
        lambda: cyrt.exp(tensor),
    ):
        with pytest.raises(ValueError, match=r"negated.*pass x.resolve_neg\(\)"):
            use()


def test_tensor_without_elements(module, library):
    empty = Tensor(library, 0)
    for data in (empty.address, 0):
        empty.fields["data"] = data
        module["axpb"][1, 1](empty, 1.0, 1.0, 0)
        with cyrt.batch():
            module["axpb"][1, 1](empty, 1.0, 1.0, 0)
    assert cyrt.asarray(empty).shape == (0,)


@producers.Describe
def fail(tensor, out):
    return -1


@producers.CurrentStream
def no_stream(kind, index, out):
    return -1


@pytest.mark.parametrize("what", [{"describe": fail}, {"current_stream": no_stream}])
def test_library_that_fails(module, library, what):
    cls = type("Failing", (Tensor,), {"__dlpack_c_exchange_api__": capsule_of(functions(**what))})
    with pytest.raises((BufferError, SystemError, ValueError)):
        module["axpb"][1, N](cls(library), 1.0, 1.0, N)


@pytest.mark.parametrize("error", [KeyboardInterrupt, AttributeError])
def test_exception_while_a_tensor_is_described(module, library, error):
    raised = []

    class Raising(Tensor):
        @property
        def requires_grad(self):
            if not raised:
                raised.append(error)
                raise error
            return False

    tensor = Raising(library)
    if error is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            module["axpb"][1, N](tensor, 1.0, 1.0, N)
    else:  # the general way describes the tensor once more
        module["axpb"][1, N](tensor, 1.0, 1.0, N)
    assert raised == [error]
    assert (tensor.values() == (error is AttributeError)).all()


class OtherType:
    """A type whose offer is not understood, with the older protocol."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.__cuda_array_interface__ = {
            "version": 3,
            "typestr": "<f4",
            "shape": (N,),
            "data": (tensor.address, False),
        }


@pytest.mark.parametrize(
    "offer",
    [
        None,
        5,
        capsule_of(functions(), b"another"),
        capsule_of(functions(major=2)),
        capsule_of(functions(describe=None)),
        capsule_of(functions(current_stream=None)),
    ],
)
def test_offer_that_is_not_understood(module, library, tensor, offer):
    cls = type("Other", (OtherType,), {"__dlpack_c_exchange_api__": offer})
    before = Tensor.described
    module["axpb"][1, N](cls(tensor), 1.0, 3.0, N)
    assert (tensor.values() == 3).all()
    assert cyrt.asarray(cls(tensor)).shape == (N,)
    assert Tensor.described == before


def test_older_version_of_a_newer_offer(module, library):
    newer = functions(major=2, previous=functions())
    cls = type("Newer", (Tensor,), {"__dlpack_c_exchange_api__": capsule_of(newer)})
    tensor, cls.described = cls(library), 0
    module["axpb"][1, N](tensor, 1.0, 3.0, N)
    assert (tensor.values() == 3).all()
    assert cls.described == 1


def test_types_are_forgotten(module, library):
    """More types than are kept, each of them used twice."""
    kept = []
    for _ in range(2):
        for i in range(100):
            if len(kept) <= i:
                kept.append(type(f"T{i}", (Tensor,), {})(library))
            module["axpb"][1, N](kept[i], 1.0, 1.0, N)
    assert all((each.values() == 2).all() for each in kept)


def test_asarray_is_a_view(library, tensor):
    x = cyrt.asarray(tensor)
    x += 3
    assert (tensor.values() == 3).all()
    assert (x.shape, x.dtype) == ((N,), cyrt.float32)
    matrix = cyrt.asarray(Tensor(library, (4, 8), strides=(1, 4)))
    assert matrix.shape == (4, 8)
    alive = weakref.ref(tensor)
    del tensor
    assert alive() is not None


def test_asarray_copies_a_host_tensor_by_its_protocols(library, monkeypatch):
    class Host(Tensor):
        def __array__(self, dtype=None, copy=None):
            return np.ones(4, np.float32)

    tensor = Host(library, kind=1)
    assert cyrt.asarray(tensor).numpy().tolist() == [1] * 4


def test_encoder_takes_tensors(module, library, tensor):
    with cyrt.CommandEncoder() as encoder:
        encoder.add_kernel(module["axpb"], 1, N, (tensor, 1.0, 2.0, N))
    assert (tensor.values() == 2).all()


def test_synchronize_waits_for_a_kernel_on_the_librarys_stream(module, library):
    gate, x = Gate(), Tensor(library, N, "i4")
    y = cyrt.full(N, 3, "int32")
    gate.copy(y, x, N)
    gate.copy(y, x, N)
    timer = gate.open_in(0.05)
    cyrt.synchronize()
    assert gate.flag[0] == 1
    timer.join()


def test_operands_of_operators_and_functions(library, tensor):
    x = cyrt.full(N, 3.0)
    assert (x + tensor).numpy().tolist() == [3] * N
    assert (x - cyrt.add(tensor, 1.0)).numpy().tolist() == [2] * N
    assert cyrt.subtract(tensor, x).numpy().tolist() == [-3] * N
    assert cyrt.exp(tensor).numpy().tolist() == [1] * N
    assert cyrt.add(tensor, tensor, dtype="float64").dtype == cyrt.float64
    assert cyrt.where(cyrt.ones(N, "bool"), tensor, x).numpy().tolist() == [0] * N
    assert cyrt.clip(tensor, 1.0, x).numpy().tolist() == [1] * N
    x += tensor
    assert x.numpy().tolist() == [3] * N


def test_tensor_that_receives_a_result(library):
    x, out, total = cyrt.full(N, 3.0), Tensor(library), Tensor(library, ())
    assert cyrt.add(x, out, out=out) is out
    assert (out.values() == 3).all()
    assert cyrt.exp(cyrt.zeros(N), where=x > 2, out=out) is out
    assert (out.values() == 1).all()
    assert cyrt.clip(x, 0.0, 2.0, out=out) is out
    assert (out.values() == 2).all()
    assert cyrt.sum(out, out=total) is total
    assert total.values() == [2 * N]
    with pytest.raises(ValueError, match=r"cannot be written into shape \(\)"):
        cyrt.add(x, 1.0, out=total)


def test_operands_of_reductions_and_products(library):
    a, b = Tensor(library, (8, 4)), Tensor(library, (4, 8), strides=(1, 4))
    out = Tensor(library, (8, 8))
    cyrt.add(a, 2.0, out=a), cyrt.add(b, 3.0, out=b)
    assert cyrt.sum(a, axis=1).numpy().tolist() == [8] * 8
    assert cyrt.max(b, where=cyrt.ones(8, "bool"), initial=0.0).item() == 3
    assert cyrt.argmax(a).item() == 0
    assert cyrt.matmul(cyrt.asarray(a), b).numpy().tolist() == [[24] * 8] * 8
    assert cyrt.matmul(a, b, out=out) is out
    assert (out.values() == 24).all()
    for function in (cyrt.dot, cyrt.tensordot):
        assert function(a, b, *(1,) * (function is cyrt.tensordot)).numpy()[0, 0] == 24
    assert cyrt.outer(a, a).shape == (32, 32)
    assert cyrt.vecdot(a, a).numpy().tolist() == [16] * 8


@pytest.mark.parametrize("batched", [False, True])
def test_operand_is_ordered_with_the_librarys_current_stream(library, side, batched):
    """The library writes the operand before and after, on a stream of its own."""
    gate, x, y = Gate(), Tensor(library, N, "i4"), cyrt.zeros(N, "int32")
    with side:
        gate.write(x, 7, N)
        cyrt.commit()
    timer = gate.open_in(0.05)
    with cyrt.batch() if batched else contextlib.nullcontext():
        cyrt.add(y, x, out=y)
    library.memset(side.handle, x.address, 0)
    assert y.numpy().tolist() == [7] * N
    timer.join()
    assert not gate.expired


def test_result_is_there_for_the_librarys_current_stream(library, side):
    gate, x, y = Gate(), Tensor(library, N, "i4"), cyrt.full(N, 3, "int32")
    held = cyrt.zeros(N, "int32")
    gate.copy(y, held, N)
    timer = gate.open_in(0.05)
    cyrt.add(held, 1, out=x)
    assert (x.values() == 4).all()
    timer.join()
    assert not gate.expired


def test_operands_that_are_refused(library, tensor, monkeypatch):
    x, host = cyrt.ones(N), Tensor(library, N, kind=1)
    with pytest.raises(TypeError, match="add: expected an Array, got producers.Tensor"):
        cyrt.add(x, host)
    with pytest.raises(TypeError, match="add: expected an Array, got producers.Tensor"):
        x + host
    with pytest.raises(TypeError, match=r"sort: x: .*Tensor; cyrt.asarray\(\) makes one of it"):
        cyrt.sort(tensor)
    with pytest.raises(TypeError, match=r"softmax: x: .*Tensor; cyrt.asarray\(\) makes one of it"):
        cyrt.nn.softmax(tensor)
    monkeypatch.setattr(Tensor, "requires_grad", True)
    for call in (lambda: x + tensor, lambda: cyrt.add(x, x, out=tensor)):
        with pytest.raises(ValueError, match=r"requires a gradient.*pass x.detach\(\)"):
            call()


def test_read_only_array_receives_no_result(library, tensor):
    class ReadOnly:
        __cuda_array_interface__ = {  # noqa: RUF012
            "version": 3,
            "typestr": "<f4",
            "shape": (N,),
            "data": (tensor.address, True),
        }

    assert cyrt.add(ReadOnly(), 1.0).numpy().tolist() == [1] * N
    with pytest.raises(ValueError, match="add: out: the ReadOnly is read-only"):
        cyrt.add(cyrt.ones(N), 1.0, out=ReadOnly())


def replayed(rounds, work):
    """Do the work in blocks of their own. Return the operations replayed in each but the first."""
    encoder, counts = cyrt.current_encoder(), []
    for _ in range(rounds):
        before = encoder.stats()["replayed"]
        with cyrt.batch():
            work()
        counts.append(encoder.stats()["replayed"] - before)
    return counts


@only_replay
def test_batches_on_tensors_are_replayed(module, library, side, calls):
    _, waits = calls
    x, y, own = Tensor(library), Tensor(library), cyrt.zeros(N)
    references = sys.getrefcount(x), sys.getrefcount(y)

    def work():
        for i in range(10):
            module["axpb"][1, N](x, 1.0, float(i), N)
            module["add"][1, N](x, y, y, N)
            module["axpb"][1, N](own, 1.0, 1.0, N)
        assert sys.getrefcount(x) == references[0] + 20
        assert sys.getrefcount(y) == references[1] + 20

    assert replayed(12, work)[-1] >= 29
    waits.clear()
    work_done = replayed(1, work)
    assert work_done[0] >= 29
    assert waits.count(Tensor.stream) == 1
    assert (sys.getrefcount(x), sys.getrefcount(y)) == references
    expected, total = 0.0, 0.0
    for _ in range(13):
        for i in range(10):
            expected += i
            total += expected
    assert (x.values() == expected).all()
    assert (y.values() == total).all()
    assert (own.numpy() == 130).all()


@only_replay
@only_calls
def test_replayed_launches_on_the_same_tensor_refer_to_it_once(module, library, fresh_stream):
    x = Tensor(library)
    before, counts = sys.getrefcount(x), []

    def work():
        for _ in range(10):
            module["axpb"][1, N](x, 1.0, 1.0, N)
        counts.append(sys.getrefcount(x) - before)

    assert replayed(12, work)[-1] >= 9
    assert (counts[0], counts[-1]) == (10, 1)
    assert sys.getrefcount(x) == before
    assert (x.values() == 120).all()


@only_replay
@pytest.mark.parametrize("batched", [False, True])
def test_each_launch_describes_a_tensor_once(module, library, batched):
    x, y, own = Tensor(library), Tensor(library), cyrt.zeros(N)

    def work():
        for _ in range(8):
            module["add"][1, N](x, own, y, N)

    assert not batched or replayed(12, work)[-1] >= 7
    described, asked = Tensor.described, Tensor.asked
    if batched:
        assert replayed(1, work)[0] >= 7
    else:
        work()
    assert Tensor.described == described + 16
    assert Tensor.asked == asked + 8


@only_replay
def test_an_array_that_is_written_beside_tensors_is_of_another_version(module, library):
    """That is so as long as a tape is kept, also where the launch is replayed."""
    x, own = Tensor(library), cyrt.zeros(N)
    _, pull = cyrt.vjp(lambda t: t * t, cyrt.asarray(3.0))
    versions = [tape.versions_of(own)]

    def work():
        for _ in range(8):
            module["add"][1, N](own, x, own, N)
            versions.append(tape.versions_of(own))

    assert replayed(12, work)[-1] >= 7
    assert versions == sorted(set(versions))
    assert pull(cyrt.ones(()))[0].item() == 6


@only_replay
@pytest.mark.parametrize("change", ["grid", "address", "size", "type", "gradient", "context"])
def test_a_launch_that_differs_in_a_replayed_batch(module, library, monkeypatch, change):
    """What each launch asks of the tensor decides, not what it was in the batch before."""
    x, other, own = Tensor(library), Tensor(library), cyrt.ones(N)
    fields = dict(x.fields)
    halves = (1, N)

    def launch():
        module["axpb"][halves](x, 1.0, 1.0, N)
        module["add"][1, N](own, x, own, N)

    def work(differs=False):
        nonlocal halves
        for i in range(8):
            if not differs or i != 4:
                launch()
            elif change == "grid":
                halves = (2, N // 2)
                launch()
                halves = (1, N)
            elif change in ("address", "size"):
                part = {"data": other.address} if change == "address" else {}
                x.fields.update(part, shape=(producers.c_int64 * 1)(N // (1 + (not part))))
                launch()
                x.fields.update(fields)
            elif change == "context":  # outside of the block
                Context().run(launch)
                assert (x.values() == 5).all()
            else:
                if change == "type":
                    x.fields["code"] = 0
                else:
                    monkeypatch.setattr(Tensor, "requires_grad", True)
                error = TypeError if change == "type" else ValueError
                with pytest.raises(error, match="argument 1 "):
                    launch()
                monkeypatch.undo()
                x.fields.update(fields)

    assert replayed(12, work)[-1] >= 15
    library.memset(0, x.address, 0)
    own[:] = 0
    assert (replayed(1, lambda: work(True))[0] >= 15) == (change == "grid")
    moved, refused = change == "address", change in ("type", "gradient")
    assert (x.values() == 8 - moved - refused).all()
    assert (other.values() == moved).all()
    expected = sum([1, 2, 3, 4, 1, 5, 6, 7]) if moved else sum(range(1, 9 - refused))
    assert (own.numpy() == expected).all()
    assert replayed(1, work)[0] >= 15


@only_replay
@pytest.mark.parametrize("between_arrays", [0, 2])
def test_replayed_batch_is_ordered_at_both_ends(module, library, side, between_arrays):
    gate, x, y = Gate(), Tensor(library, N, "i4"), cyrt.zeros(N, "int32")
    own = cyrt.zeros(N)
    copy = cyrt.Kernel(
        'extern "C" __global__ void copy(const int* x, int* y, int n)'
        "{ if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x]; }",
        "copy",
    )
    z = Tensor(library, N, "i4")

    def work():
        for _ in range(between_arrays):
            module["axpb"][1, N](own, 1.0, 1.0, N)
        for _ in range(4):
            copy[1, N](x, y, N)
            copy[1, N](y, z, N)
        for _ in range(between_arrays):
            module["axpb"][1, N](own, 1.0, 1.0, N)

    assert replayed(12, work)[-1] >= 7
    with side:
        gate.wait()
        cyrt.commit()
    library.memset(side.handle, x.address, 7)
    timer = gate.open_in(0.05)
    assert replayed(1, work)[0] >= 7
    assert (z.values() == 0x07070707).all()
    timer.join()
    assert not gate.expired
    # The library works on another stream from here on.
    library.memset(0, x.address, 0)
    Tensor.stream = 0
    assert replayed(1, work)[0] >= 7
    assert (z.values() == 0).all()


@only_replay
def test_surprise_in_a_replayed_batch_on_tensors(module, library, tensor):
    """Tensors that overlap the replayed ones, and other memory of others, are still ordered."""
    part, other = Tensor(library, 64), Tensor(library)
    part.fields["data"] = tensor.address + 128
    view = cyrt.asarray(other)

    def work(surprise=None):
        for i in range(8):
            module["axpb"][1, N](tensor, 2.0, 1.0, N)
            module["add"][1, N](tensor, other, other, N)
            if i == 4 and surprise is not None:
                surprise()

    assert replayed(12, work)[-1] >= 15
    surprises = [
        lambda: module["axpb"][1, 64](part, 0.0, 5.0, 64),
        lambda: cyrt.multiply(view, 0.5, out=view),
        lambda: module["axpb"][1, N](Tensor(library), 0.0, 5.0, N),
        lambda: cyrt.add(tensor, 1.0, out=tensor),
    ]
    for index, surprise in enumerate(surprises):
        library.memset(0, tensor.address, 0)
        library.memset(0, other.address, 0)
        replayed(1, lambda surprise=surprise: work(surprise))
        x, y = np.zeros(N), np.zeros(N)
        for i in range(8):
            x = 2 * x + 1
            y = x + y
            if i == 4:
                if index == 0:
                    x[32:96] = 5
                elif index == 1:
                    y *= 0.5
                elif index == 3:
                    x += 1
        assert (tensor.values() == x).all(), index
        assert (other.values() == y).all(), index


@only_replay
def test_another_tensor_in_the_place_of_a_forgotten_one(module, library):
    """A block that scripts have is given to other memory, which overlaps that of another tensor."""
    owner = Tensor(library, 4 * 8192)

    def part(start, size):
        made = Part.__new__(Part)
        made.library, made.nbytes, made.address = library, 4 * size, owner.address + 4 * start
        made.kept = (producers.c_int64 * 1)(size)
        made.fields = {**owner.fields, "data": made.address, "shape": made.kept}
        return made

    first, last = part(0, 256), part(256, 256)

    def work(x, y):
        for _ in range(4):
            module["axpb"][1, N](x, 1.0, 1.0, N)
            module["axpb"][1, N](y, 2.0, 0.0, N)

    assert replayed(12, lambda: work(first, last))[-1] >= 7
    for i in range(2, 16000):  # all entries are given away, and later those to others
        each = part(4 * (i % 8000), 4)
        module["axpb"][1, 4](each, 1.0, 0.0, 4)
    library.memset(0, owner.address, 0, owner.nbytes)
    moved = part(128, 256)
    replayed(1, lambda: work(moved, last))
    expected = np.zeros(4 * 8192)
    for _ in range(4):
        expected[128:384] += 1
        expected[256:512] *= 2
    assert (owner.values() == expected).all()


@only_replay
def test_other_threads_launch_is_not_deferred_by_a_replay(module, library, tensor):
    """It is outside of the block, though the block's batch is replayed on its stream."""
    stream = cyrt.Stream()
    results = []

    def other():
        with stream:
            module["axpb"][1, N](tensor, 1.0, 1.0, N)
        results.append((tensor.values() == 1).all())

    def work(begin=False):
        for i in range(8):
            if begin and i == 4:
                thread = threading.Thread(target=other)
                thread.start()
                thread.join()
            module["axpb"][1, N](tensor, 0.0, 0.0, N)

    with stream:
        assert replayed(12, work)[-1] >= 7
        replayed(1, lambda: work(True))
    assert results == [True]
    assert (tensor.values() == 0).all()


@pytest.fixture
def cupy(monkeypatch):
    """Stand-ins for CuPy's module and class."""
    monkeypatch.setitem(sys.modules, "cupy", CupyModule)
    return type("ndarray", (CupyArray,), {"__module__": "cupy"})


def test_cupys_arrays_are_read_by_their_attributes(module, library, side, cupy, calls):
    launched, waits = calls
    x, y = cupy(Tensor(library)), cupy(Tensor(library))
    module["axpb"][1, N](x, 1.0, 3.0, N)
    launched.clear(), waits.clear()
    before = CupyArray.read
    for _ in range(3):
        module["add"][1, N](x, x, y, N)
    assert CupyArray.read == before + 9
    assert launched == [Tensor.stream] * 3
    assert waits == []
    assert (y.tensor.values() == 6).all()
    with cyrt.batch():
        module["axpb"][1, N](x, 2.0, 0.0, N)
    assert (x.tensor.values() == 6).all()


def test_views_and_operands_of_cupys_arrays(module, library, cupy):
    tensor = Tensor(library, (4, 8))
    x = cupy(tensor)
    view = cyrt.asarray(x)
    assert (view.shape, view.dtype) == ((4, 8), cyrt.float32)
    assert cyrt.add(view, 2.0, out=x) is x
    assert (tensor.values() == 2).all()
    turned = cyrt.asarray(cupy(tensor, (8, 4), (4, 32)))
    assert turned.shape == (8, 4)
    flipped = cyrt.asarray(cupy(tensor, (32,), (-4,), offset=124))
    assert (flipped + 1).numpy().tolist() == [3] * 32
    assert cyrt.asarray(cupy(Tensor(library, 0))).shape == (0,)
    assert cyrt.asarray(cupy(Tensor(library, (), "c8"))).dtype == cyrt.complex64


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"strides": (8,)}, ValueError, "expected a C-contiguous array"),
        ({"strides": (6,)}, BufferError, "the array's stride of 6 bytes"),
        ({"device": 99}, ValueError, "lies on CUDA device 99"),
        ({"offset": 2}, ValueError, "expected an address that is a multiple of 4"),
        ({"shape": (-1,), "strides": (4,)}, ValueError, "expected sizes of 0 or more"),
    ],
)
def test_cupys_arrays_that_are_refused(module, library, cupy, fields, error, text):
    array = cupy(Tensor(library))
    for name, value in fields.items():
        setattr(array, name, value)
    with pytest.raises(error, match=text):
        module["axpb"][1, N](array, 1.0, 1.0, N)
    array = cupy(Tensor(library, N, "i4"))
    with pytest.raises(TypeError, match="expected an array of float32"):
        module["axpb"][1, N](array, 1.0, 1.0, N)
