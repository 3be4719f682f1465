"""Objects that were never initialised, or are initialised again; blocks left where none was
entered."""

from __future__ import annotations

import threading

import pytest

import cyrt
from cyrt.runtime.memory import Memory
from cyrt.runtime.module import LoadedFunction, LoadedModule

PLACE = (cyrt.Buffer, cyrt.PinnedBuffer, cyrt.ManagedBuffer)


def bare(kind):
    return kind.__new__(kind)


def uses_of_memory(kind):
    yield from (
        (kind, "ptr", lambda x: x.ptr),
        (kind, "nbytes", lambda x: x.nbytes),
        (kind, "device", lambda x: x.device),
        (kind, "len", len),
        (kind, "free", lambda x: x.free()),
        (kind, "slice", lambda x: x[0:0]),
        (kind, "fill", lambda x: x.fill(0)),
        (kind, "copy_to", lambda x: x.copy_to(bytearray())),
        (kind, "copy_from", lambda x: x.copy_from(b"")),
        (kind, "source", lambda x: cyrt.Buffer(0).copy_from(x)),
        (kind, "target", lambda x: cyrt.Buffer(0).copy_to(x)),
    )


USES = [
    *(use for kind in PLACE for use in uses_of_memory(kind)),
    (cyrt.PinnedBuffer, "memoryview", memoryview),
    (cyrt.ManagedBuffer, "memoryview", memoryview),
    (cyrt.Stream, "handle", lambda x: x.handle),
    (cyrt.Stream, "protocol", lambda x: x.__cuda_stream__()),
    (cyrt.Stream, "device", lambda x: x.device),
    (cyrt.Stream, "priority", lambda x: x.priority),
    (cyrt.Stream, "done", lambda x: x.done),
    (cyrt.Stream, "synchronize", lambda x: x.synchronize()),
    (cyrt.Stream, "wait", lambda x: x.wait(cyrt.Event())),
    (cyrt.Stream, "wait for it", lambda x: cyrt.Stream().wait(x)),
    (cyrt.Stream, "with", lambda x: x.__enter__()),
    (cyrt.Stream, "exit", lambda x: x.__exit__()),
    (cyrt.Stream, "fill", lambda x: cyrt.Buffer(4).fill(0, x)),
    (cyrt.Stream, "copy", lambda x: cyrt.Buffer(4).copy_to(bytearray(4), x)),
    (cyrt.Stream, "encoder", cyrt.CommandEncoder),
    (cyrt.Stream, "record", lambda x: cyrt.Event().record(x)),
    (cyrt.Stream, "event", lambda x: cyrt.Event().record().wait(x)),
    (cyrt.Event, "handle", lambda x: x.handle),
    (cyrt.Event, "device", lambda x: x.device),
    (cyrt.Event, "record", lambda x: x.record()),
    (cyrt.Event, "wait", lambda x: x.wait()),
    (cyrt.Event, "wait for it", lambda x: cyrt.Stream().wait(x)),
    (cyrt.Event, "done", lambda x: x.done),
    (cyrt.Event, "synchronize", lambda x: x.synchronize()),
    (cyrt.Event, "elapsed", lambda x: x.elapsed_time(cyrt.Event().record())),
    (cyrt.Event, "elapsed to it", lambda x: cyrt.Event().record().elapsed_time(x)),
    (cyrt.Device, "index", lambda x: x.index),
    (cyrt.Device, "__index__", lambda x: x.__index__()),
    (cyrt.Device, "name", lambda x: x.name),
    (cyrt.Device, "uuid", lambda x: x.uuid),
    (cyrt.Device, "emulated", lambda x: x.emulated),
    (cyrt.Device, "compute_capability", lambda x: x.compute_capability),
    (cyrt.Device, "multiprocessors", lambda x: x.multiprocessors),
    (cyrt.Device, "managed", lambda x: x.concurrent_managed_access),
    (cyrt.Device, "attribute", lambda x: x.attribute("WARP_SIZE")),
    (cyrt.Device, "memory_info", lambda x: x.memory_info()),
    (cyrt.Device, "reset", lambda x: x.reset()),
    (cyrt.Device, "with", lambda x: x.__enter__()),
    (cyrt.Device, "exit", lambda x: x.__exit__()),
    (cyrt.Device, "of a Buffer", lambda x: cyrt.Buffer(4, x)),
    (cyrt.Device, "of a Stream", cyrt.Stream),
    (cyrt.Device, "of an Event", cyrt.Event),
    (LoadedModule, "function", lambda x: x.function("k")),
    (LoadedModule, "function_names", lambda x: x.function_names()),
    (LoadedModule, "variable", lambda x: x.variable("v")),
    (LoadedFunction, "registers", lambda x: x.registers),
    (LoadedFunction, "local_bytes", lambda x: x.local_bytes),
    (LoadedFunction, "binary_version", lambda x: x.binary_version),
    (LoadedFunction, "parameters", lambda x: x.parameters()),
    (LoadedFunction, "blocks", lambda x: x.blocks_per_multiprocessor(32)),
    (LoadedFunction, "block", lambda x: x.suggested_block()),
    (cyrt.Module, "names", lambda x: x.names),
    (cyrt.Module, "kernel", lambda x: x["k"]),
    (cyrt.Module, "contains", lambda x: "k" in x),
    (cyrt.Module, "variable", lambda x: x.get_global("v")),
]


@pytest.mark.parametrize(
    ("kind", "use"),
    [(kind, use) for kind, _, use in USES],
    ids=[f"{kind.__name__}-{name}" for kind, name, _ in USES],
)
def test_never_initialised(kind, use):
    with pytest.raises(RuntimeError, match="was not initialised|was not made by"):
        use(bare(kind))


@pytest.mark.parametrize("kind", [*PLACE, cyrt.Stream, cyrt.Event, cyrt.Device, cyrt.Module])
def test_what_was_never_initialised_is_shown(kind):
    assert repr(bare(kind)) == f"<cyrt.{kind.__name__}, not initialised>"


def test_memory_of_no_class_of_ours():
    with pytest.raises(RuntimeError, match="the Memory was not initialised"):
        cyrt.Buffer(4).copy_from(bare(Memory))


def test_the_first_call_of_a_process(python):
    done = python("""
        import cyrt
        try:
            cyrt.Event.__new__(cyrt.Event).done
        except RuntimeError as error:
            print(error)
    """)
    assert (done.returncode, done.stdout) == (0, "the Event was not initialised\n"), done.stderr


@pytest.mark.parametrize("kind", PLACE)
def test_freed_memory_is_not_initialised_again(kind):
    buffer = kind(512)
    view = buffer[0:256]
    buffer.free()
    with pytest.raises(RuntimeError, match=f"{kind.__name__} is initialised once"):
        buffer.__init__(1 << 16)
    with pytest.raises(ValueError, match="was freed already"):
        view.fill(9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: cyrt.Buffer(8)[2:4],
        lambda: cyrt.pointer(cyrt.Buffer(8).ptr, 8),
        lambda: cyrt.PinnedBuffer(8)[2:4],
    ],
)
def test_a_view_is_not_initialised(make):
    with pytest.raises(RuntimeError, match="initialised once"):
        make().__init__(64)


@pytest.mark.parametrize(
    "make", [cyrt.Device, lambda: LoadedModule(b".version 8.0\n.target sm_80\n.address_size 64\n")]
)
def test_initialised_once(make):
    thing = make()
    arguments = (b"",) if isinstance(thing, LoadedModule) else (0,)
    with pytest.raises(RuntimeError, match="initialised once"):
        thing.__init__(*arguments)


@pytest.mark.parametrize("kind", [cyrt.PinnedBuffer, cyrt.ManagedBuffer])
def test_memory_of_the_host_is_not_initialised_as_a_devices(kind):
    buffer = bare(kind)
    with pytest.raises(TypeError, match=f"a {kind.__name__} is initialised by its own class"):
        cyrt.Buffer.__init__(buffer, 64)
    buffer.__init__(64)
    assert len(bytes(buffer)) == 64


@pytest.mark.parametrize(
    ("kind", "call", "types"),
    [
        (cyrt.Buffer, "cuMemAlloc", "pz"),
        (cyrt.PinnedBuffer, "cuMemHostAlloc", "pzu"),
        (cyrt.ManagedBuffer, "cuMemAllocManaged", "pzu"),
    ],
)
def test_of_two_that_initialise_the_first_one_stays(kind, call, types, replaced):
    """The first one to end runs while the other one asks the driver for memory."""
    import ctypes

    of = {"p": ctypes.c_void_p, "z": ctypes.c_size_t, "u": ctypes.c_uint}
    cyrt.trim_memory()  # no block of that size is left that serves it
    buffer, asked = bare(kind), []

    def allocate(original, *arguments):
        asked.append(None)
        if len(asked) == 1:
            buffer.__init__(3 << 20)
        return original(*arguments)

    replaced(call, [of[each] for each in types], allocate)
    in_use = cyrt.memory_stats()["in_use"]
    with pytest.raises(RuntimeError, match=f"a {kind.__name__} is initialised once"):
        buffer.__init__(9 << 20)
    assert buffer.nbytes == 3 << 20
    buffer.fill(1)
    assert cyrt.memory_stats()["in_use"] - in_use < 9 << 20


@pytest.mark.parametrize(
    ("kind", "call", "types"),
    [
        (cyrt.Buffer, "cuMemAlloc", "pz"),
        (cyrt.PinnedBuffer, "cuMemHostAlloc", "pzu"),
        (cyrt.ManagedBuffer, "cuMemAllocManaged", "pzu"),
    ],
)
def test_after_a_failure_it_is_initialised_again(kind, call, types, replaced):
    import ctypes

    of = {"p": ctypes.c_void_p, "z": ctypes.c_size_t, "u": ctypes.c_uint}
    cyrt.trim_memory()  # no block of that size is left that serves it
    buffer, failures = bare(kind), [2]

    def allocate(original, *arguments):
        return failures[0] if failures else original(*arguments)

    replaced(call, [of[each] for each in types], allocate)
    with pytest.raises(cyrt.OutOfMemoryError):
        buffer.__init__(17 << 20)
    failures.clear()
    buffer.__init__(17 << 20)
    assert buffer.nbytes == 17 << 20


@pytest.mark.parametrize("make", [cyrt.Stream, cyrt.Device])
def test_a_block_is_left_by_the_thread_that_entered_it(make):
    thing, errors = make(), []

    def leave():
        try:
            thing.__exit__(None, None, None)
        except RuntimeError as error:
            errors.append(str(error))

    leave()  # it was never entered
    with thing:
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
    leave()  # it was left
    assert len(errors) == 3
    assert all("this thread has no open `with` block" in text for text in errors), errors


def test_a_block_of_a_stream_inside_another_ones():
    """A generator's block ends while one that began later is open."""
    before, first, second = cyrt.stream(), cyrt.Stream(), cyrt.Stream()

    def inside():
        with first:
            yield

    generator = inside()
    next(generator)
    with second:
        generator.close()
        assert cyrt.stream() == second
    assert cyrt.stream() == before


def test_a_block_of_a_device_inside_another_ones(python):
    done = python(
        """
        import cyrt

        def inside():
            with cyrt.Device(1):
                yield

        generator = inside()
        next(generator)
        with cyrt.Device(2):
            generator.close()
            assert cyrt.Device.current().index == 2
        assert cyrt.Device.current().index == 0
        """,
        CYRT_DEVICE="emulated",
        CYRT_EMULATED_DEVICES="3",
    )
    assert done.returncode == 0, done.stderr
