"""Memory of other libraries, and host memory: never late, never early, never gone."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from outside import Library, N, Tensor, device, edges, host, only_batches, zeros

import cyrt


@pytest.fixture(scope="module")
def library():
    return Library()


@pytest.fixture
def tensor(library):
    return Tensor(library)


def test_is_never_seen_late(module, library, tensor):
    """The other library writes and reads around cyrt's work and knows nothing of it."""
    for i in range(50):
        library.memset(0, tensor.address, 0)
        module["axpb"][1, N](tensor, 1.0, float(i), N)
        assert (tensor.values() == i).all()


def test_dropped_right_after_it_was_recorded(module, library, encoder):
    """It lives until the batch has ended: then its library may use the memory again."""
    y = zeros()
    for i in range(20):
        tensor = Tensor(library)
        encoder.add_kernel(module["axpb"], 1, N, (tensor, 0.0, float(i), N))
        encoder.add_kernel(module["add"], 1, N, (tensor, y, y, N))
        del tensor
    gc.collect()
    encoder.synchronize()
    assert (host(y) == sum(range(20))).all()


@only_batches
def test_overlapping_views_conflict(module, tensor):
    with cyrt.batch() as encoder:
        encoder.commit()
        module["axpb"][1, 64](tensor[:64], 1.0, 1.0, 64)  # 0
        module["axpb"][1, 64](tensor[192:], 1.0, 5.0, 64)  # 1: elsewhere
        module["axpb"][1, 64](tensor[32:96], 2.0, 0.0, 64)  # 2: after 0
        module["add"][1, 64](tensor[:64], tensor[:64], tensor[96:160], 64)  # 3: after 2
        module["axpb"][1, N](tensor, 1.0, 1.0, N)  # 4: after all
    found = edges(encoder)
    assert {(0, 2), (2, 3)} <= set(found)
    assert (0, 1) not in found
    expected = np.zeros(N, np.float32)
    expected[:64] += 1
    expected[192:] += 5
    expected[32:96] *= 2
    expected[96:160] = 2 * expected[:64]
    assert (tensor.values() == expected + 1).all()


@only_batches
def test_handed_out_memory_and_a_view_of_it_conflict(module, encoder):
    mine = zeros()
    theirs = cyrt.pointer(mine.ptr, mine.nbytes)
    for buffer, add in ((mine, 1.0), (theirs[: 2 * N], 2.0), (mine, 3.0)):
        encoder.add_kernel(module["axpb"], 1, N, (buffer, 1.0, add, buffer.nbytes // 4))
    encoder.commit()
    assert {(0, 1), (1, 2)} <= set(edges(encoder))
    assert host(mine).tolist() == [6.0] * (N // 2) + [4.0] * (N // 2)


@only_batches
@pytest.mark.parametrize("how", ["current", "encoder"])
def test_declared_memory_is_ordered_as_an_argument_is(module, library, tensor, how):
    table = device(np.array([tensor.address], np.uint64))
    other = Tensor(library)
    with cyrt.batch() as encoder:
        encoder.commit()
        module["axpb"][1, N](tensor, 1.0, 1.0, N)  # 0
        module["axpb"][1, N](other, 1.0, 1.0, N)  # 1: has nothing to do with it
        if how == "current":
            module["deep"][1, N](table, N, writes=[tensor])  # 2
        else:
            encoder.add_kernel(module["deep"], 1, N, (table, N), writes=[tensor])  # 2
        module["axpb"][1, N](tensor, 2.0, 0.0, N)  # 3
    assert edges(encoder) == [(0, 2), (2, 3)]
    assert (tensor.values() == 4).all()


@pytest.mark.parametrize("handed_out", [False, True])
def test_freed_inside_a_batch(module, handed_out):
    memory = zeros()
    p = memory if handed_out else cyrt.pointer(memory.ptr, memory.nbytes)
    address = p.ptr
    y = zeros()
    with cyrt.batch():
        module["axpb"][1, N](p, 1.0, 1.0, N)
        module["add"][1, N](p, y, y, N)
        p.free()
        if not handed_out:
            again = cyrt.pointer(address, 4 * N)
            module["axpb"][1, N](again, 1.0, 1.0, N)
            module["add"][1, N](again, y, y, N)
    assert (host(y) == (1 if handed_out else 3)).all()


def test_a_host_array_changed_right_after_it_was_copied_from(encoder):
    for count in (N, 1 << 18, 3 << 20):  # the driver's buffer, one chunk, several
        source = np.full(count, 7, np.float32)
        buffer = cyrt.Buffer(source.nbytes)
        encoder.add_memcpy(buffer, source)
        source[:] = -1
        assert (host(buffer) == 7).all()


def test_pinned_memory_changed_right_after_it_was_copied_from(encoder):
    pinned = cyrt.PinnedBuffer(4 * N)
    view = np.frombuffer(pinned, np.float32)
    view[:] = 3
    buffer = cyrt.Buffer(4 * N)
    encoder.add_memcpy(buffer, pinned)
    view[:] = -1
    assert (host(buffer) == 3).all()


@pytest.mark.parametrize("source", ["buffer", "view", "array", "tensor"])
@pytest.mark.parametrize("target", ["buffer", "view", "array", "tensor"])
def test_copies_in_every_combination(library, encoder, source, target):
    if {source, target} <= {"array", "tensor"}:
        with pytest.raises(TypeError, match="expected a Buffer as dst or src"):
            encoder.add_memcpy(np.zeros(N, np.float32), np.zeros(N, np.float32))
        return
    values = np.arange(N, dtype=np.float32)

    def place(kind):
        return {
            "buffer": lambda: zeros(),
            "view": lambda: zeros(2 * N)[2 * N : 6 * N],
            "array": lambda: np.zeros(N, np.float32),
            "tensor": lambda: Tensor(library),
        }[kind]()

    src, dst = place(source), place(target)
    if source == "array":
        src[:] = values
    elif source == "tensor":
        encoder.add_memcpy(src, device(values))
    else:
        encoder.add_memcpy(src, values)
    encoder.add_memcpy(dst, src)
    got = dst if target == "array" else dst.values() if target == "tensor" else host(dst)
    assert (got == values).all()


def test_overlapping_copies_are_as_if_read_first(encoder):
    for shift in (4, -4, 64, -64):
        values = np.arange(N, dtype=np.float32)
        buffer = device(values)
        low, high = buffer[: -abs(shift)], buffer[abs(shift) :]
        encoder.add_memcpy(high if shift > 0 else low, low if shift > 0 else high)
        k = abs(shift) // 4
        if shift > 0:
            values[k:] = values[:-k].copy()
        else:
            values[:-k] = values[k:].copy()
        assert (host(buffer) == values).all()


def test_fills_of_every_width(encoder):
    buffer = cyrt.Buffer(64)
    out = np.empty(64, np.uint8)
    for value, part in (
        (200, slice(3, 61)),
        (np.uint16(0x1234), slice(2, 62)),
        (np.float32(1.5), slice(4, 60)),
    ):
        encoder.add_memset(buffer, 0)
        encoder.add_memset(buffer[part], value)
        buffer.copy_to(out)
        expected = np.zeros(64, np.uint8)
        raw = value.tobytes() if hasattr(value, "tobytes") else bytes([value])
        pattern = np.frombuffer(raw, np.uint8)
        expected[part] = np.resize(pattern, part.stop - part.start)
        assert (out == expected).all(), value


def test_nothing_to_copy_or_to_fill_is_no_operation(encoder, module):
    empty, other = cyrt.Buffer(0), cyrt.Buffer(0)
    encoder.add_memcpy(empty, other)
    encoder.add_memcpy(empty, b"")
    encoder.add_memcpy(np.empty(0, np.float32), empty)
    encoder.add_memset(empty, 1)
    assert encoder.num_ops == encoder.stats()["operations"] == 0
    with pytest.raises(ValueError, match="grid"):
        encoder.add_kernel(module["axpb"], 0, N, (zeros(), 1.0, 1.0, 0))
    encoder.add_kernel(module["axpb"], 1, N, (empty, 1.0, 1.0, 0))
    encoder.add_kernel(module["add"], 1, N, (other, empty, empty, 0))
    encoder.synchronize()
    assert encoder.stats()["operations"] == 2


@pytest.mark.parametrize(
    ("dst", "src", "error"),
    [
        (lambda: zeros(), lambda: np.zeros(3, np.float32), ValueError),
        (lambda: zeros(), lambda: zeros(2), ValueError),
        (lambda: zeros(), lambda: 5, TypeError),
        (lambda: None, lambda: zeros(), TypeError),
        (lambda: bytes(4 * N), lambda: zeros(), ValueError),
        (lambda: zeros(), lambda: np.zeros((N, 2), np.float32)[:, 0], ValueError),
    ],
)
def test_bad_copies_record_nothing(encoder, dst, src, error):
    with pytest.raises(error):
        encoder.add_memcpy(dst(), src())
    assert encoder.num_ops == 0
