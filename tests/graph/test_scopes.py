"""``concurrent()`` and ``batch()`` belong to the thread and the context that opened them."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from outside import N, edges, host, only_batches, zeros

import cyrt

PART = N // 4


@pytest.fixture
def stream():
    """The current stream, on which nobody has recorded before."""
    with cyrt.Stream() as stream:
        yield stream


@pytest.fixture
def another(stream):
    """Call a function on another thread, whose current stream is the same."""
    with ThreadPoolExecutor(1) as executor:
        executor.submit(stream.__enter__).result()
        yield lambda function: executor.submit(function).result()
        executor.submit(stream.__exit__, None, None, None).result()


class Parts:
    """Four parts of one memory: kernels on them have no order in a group, and one anywhere else."""

    def __init__(self, module):
        self.kernel, self.memory = module["axpb"], zeros()
        self.parts = [self.memory[i * 4 * PART : (i + 1) * 4 * PART] for i in range(4)]
        cyrt.commit()

    def add(self, i, number=1.0):
        self.kernel[1, PART](self.parts[i], 1.0, number, PART)

    def check(self, *wanted):
        assert [host(part).tolist() for part in self.parts] == [[w] * PART for w in wanted]


@pytest.fixture
def x(module, stream):
    return Parts(module)


def found_edges():
    cyrt.commit()
    return set(edges(cyrt.current_encoder()))


@only_batches
def test_another_threads_operations_join_the_group(x, another):
    with cyrt.concurrent():
        x.add(0)  # 0
        x.add(1)  # 1
        another(lambda: x.add(0))  # 2 joins, 3
        another(lambda: x.add(1))  # 4: one memory
        x.add(2)  # 5: behind them
        x.add(3)  # 6
    x.add(3)  # 7 joins, 8
    found = found_edges()
    assert {(0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (4, 6), (5, 7), (6, 7), (7, 8)} == found
    x.check(2, 2, 1, 2)


def test_another_threads_operations_read_what_the_group_wrote(module, x, another):
    """Also with no batches, and across those that they end."""
    y = zeros(PART)
    with cyrt.concurrent():
        for i in range(4):
            x.add(i, 3.0)
            another(lambda i=i: module["add"][1, PART](x.parts[i], y, y, PART))
            another(lambda i=i: x.add(i, 4.0))
            if i % 2:
                assert another(lambda i=i: host(x.parts[i]))[0] == 7
    assert (host(y) == 12).all()
    x.check(7, 7, 7, 7)


@only_batches
def test_groups_of_two_threads_are_ordered_among_themselves(x, another):
    with cyrt.concurrent():
        x.add(0)  # 0
        x.add(1)  # 1
        theirs = another(cyrt.concurrent)
        another(theirs.__enter__)
        another(lambda: x.add(2))  # 2 joins, 3
        another(lambda: x.add(3))  # 4
        x.add(0)  # 5 joins, 6
        x.add(1)  # 7
        another(lambda: theirs.__exit__(None, None, None))
        x.add(2)  # 8
    x.add(0)  # 9 joins, 10
    found = found_edges()
    groups = [(0, 1), (3, 4), (6, 7, 8)]
    assert not {(a, b) for group in groups for a in group for b in group} & found
    assert {(0, 2), (1, 2), (2, 3), (2, 4), (3, 5), (4, 5), (5, 6), (5, 7), (5, 8)} <= found
    assert {(6, 9), (7, 9), (8, 9), (9, 10)} <= found
    x.check(3, 2, 2, 1)


@only_batches
def test_a_group_goes_on_when_another_threads_has_ended(x, another):
    """It joins its own group when it leaves, and ends nobody else's."""
    theirs = another(cyrt.concurrent)
    with cyrt.concurrent():
        another(theirs.__enter__)
        another(lambda: x.add(0))  # 0
        another(lambda: theirs.__exit__(None, None, None))  # 1 joins
        another(lambda: x.add(0))  # 2
        another(lambda: x.add(0))  # 3: in order
        x.add(2)  # 4
        x.add(3)  # 5: in a group
    found = found_edges()
    assert {(0, 1), (1, 2), (2, 3), (3, 4), (3, 5)} <= found
    assert (4, 5) not in found


@only_batches
def test_another_task_is_outside_and_one_begun_inside_is_inside(x):
    async def main():
        inside, outside = asyncio.Event(), asyncio.Event()

        async def neighbour():
            await inside.wait()
            x.add(0)  # 2 joins, 3
            x.add(1)  # 4
            outside.set()

        async def child():
            x.add(2)  # 5
            x.add(3)  # 6
            await ended.wait()
            x.add(2)  # 8: the block has ended, though the task's context has it
            x.add(3)  # 9

        task, ended = asyncio.create_task(neighbour()), asyncio.Event()
        with cyrt.concurrent():
            x.add(0)  # 0
            x.add(1)  # 1
            inside.set()
            await outside.wait()
            begun = asyncio.create_task(child())
            asyncio.get_running_loop().call_soon(ended.set)
            await asyncio.sleep(0)
        # 7 joins
        await asyncio.gather(task, begun)

    asyncio.run(main())
    found = found_edges()
    assert {(0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (4, 6), (5, 7), (6, 7)} <= found
    assert {(7, 8), (8, 9)} <= found
    assert not {(0, 1), (5, 6)} & found
    x.check(2, 2, 2, 2)


@only_batches
def test_a_function_on_a_thread_of_asyncios_is_outside(x, stream):
    """It has a copy of the block's context, on another thread."""

    def add():
        with stream:
            x.add(0)  # 2 joins, 3
            x.add(1)  # 4
            return found_edges()

    async def main():
        with cyrt.concurrent():
            x.add(2)  # 0
            x.add(3)  # 1
            return await asyncio.to_thread(add)

    assert asyncio.run(main()) == {(0, 2), (1, 2), (2, 3), (3, 4)}
    x.check(1, 1, 1, 1)


def suspended(block):
    with block():
        yield


@only_batches
@pytest.mark.parametrize("how", ["closed", "collected", "collected by another thread"])
def test_a_generator_that_ends_in_another_context(x, another, how):
    """Its block ends, and the context that holds it is outside from then on."""
    context, generator = contextvars.copy_context(), suspended(cyrt.concurrent)
    context.run(next, generator)
    context.run(x.add, 0)  # 0
    context.run(x.add, 1)  # 1
    x.add(2)  # 2 joins, 3: this context is another one
    context.run(x.add, 1)  # 4
    if how == "closed":
        generator.close()  # 5 joins
    else:
        gc.disable()
        circle = [generator]
        circle.append(circle)
        del generator, circle
        gc.enable()
        another(gc.collect) if "thread" in how else gc.collect()
    context.run(x.add, 0)  # 6
    context.run(x.add, 1)  # 7
    found = found_edges()
    assert {(0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7)} == found
    with cyrt.concurrent():  # there is none left
        pass
    x.check(2, 3, 1, 0)


@only_batches
def test_the_caller_of_a_generator_is_inside_its_block(x):
    generator = suspended(cyrt.concurrent)
    next(generator)
    x.add(0)
    x.add(1)
    with pytest.raises(RuntimeError, match="concurrent: one is open on the encoder already"):
        cyrt.concurrent().__enter__()
    generator.close()
    assert (0, 1) not in found_edges()


@only_batches
def test_blocks_that_do_not_end_in_turn(x):
    """The outer one of two generators ends first, over and over."""
    before = suspended(cyrt.batch)
    next(before)
    address = x.memory.ptr
    assert address
    encoder = cyrt.current_encoder()
    for _ in range(5):
        after = suspended(cyrt.batch)
        next(after)
        x.add(0)
        assert encoder.num_ops == 1
        before.close()
        x.add(1)
        assert encoder.num_ops == 1
        before = after
    before.close()
    x.add(2)
    assert encoder.num_ops == 0
    x.check(5, 5, 1, 0)


@only_batches
def test_a_thread_that_has_the_ident_of_one_that_ended(x, stream):
    """Its context has the block of the thread that ended, but the block is not its own."""
    contexts, generators, idents = [], [], []

    def enter():
        with stream:
            generators.append(suspended(cyrt.concurrent))
            next(generators[0])
            x.add(0)  # 0
            contexts.append(contextvars.copy_context())
            idents.append(threading.get_ident())
            cyrt.commit()

    def add():
        if threading.get_ident() != idents[0]:
            return
        with stream:
            contexts[0].run(x.add, 1)
            contexts[0].run(x.add, 2)
            contexts.append(found_edges())

    def run(function):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()

    run(enter)
    for _ in range(100):
        if len(contexts) == 1:
            run(add)
    generators[0].close()
    if len(contexts) == 1:
        pytest.skip("no other thread has the ident")
    assert contexts[1] == {(0, 1)}
    x.check(1, 1, 1, 0)


@only_batches
def test_a_handler_of_a_signal_is_inside_on_the_streams_block(x):
    """Python runs it in the context of what it interrupts; on a stream of its own it is outside."""
    own, found = cyrt.Stream(), []

    def handler(*_):
        x.add(1)  # 1
        with own:
            other = Parts.__new__(Parts)
            other.kernel, other.parts = x.kernel, parts
            other.add(0)
            other.add(1)
            found.append(found_edges())

    memory = zeros()
    parts = [memory[i * 4 * PART : (i + 1) * 4 * PART] for i in range(4)]
    cyrt.synchronize()
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with cyrt.concurrent():
            x.add(0)  # 0
            signal.raise_signal(signal.SIGUSR1)
            x.add(2)  # 2
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert found == [{(0, 1)}]
    assert found_edges() == {(0, 3), (1, 3), (2, 3)}


def test_an_encoder_that_replaces_the_one_of_an_open_block(module, x, stream):
    """Nothing of the block is left to it, and its own blocks are whole."""
    with cyrt.concurrent():
        x.add(0)
        encoder = cyrt.CommandEncoder(stream)
        x.add(0)
        x.add(0)
        with encoder.concurrent():
            x.add(1)
            x.add(2)
    x.add(1)
    with cyrt.batch(), cyrt.concurrent():
        x.add(2)
        encoder.close()
        x.add(3)
        x.add(3)
    x.check(3, 2, 2, 2)


@only_batches
def test_the_end_of_a_block_whose_encoder_was_replaced(x, stream):
    """It ends no block of the encoder that has taken its place."""
    before = cyrt.concurrent()
    before.__enter__()
    with cyrt.CommandEncoder(stream) as encoder:
        with encoder.concurrent():
            before.__exit__(None, None, None)
            x.add(0)
            x.add(1)
        x.add(2)
        encoder.commit()
        assert (0, 1) not in edges(encoder)
    x.check(1, 1, 1, 0)


def test_a_streams_own_encoder_is_every_threads(x, another):
    """Who asks for it takes it from nobody: a block's thread goes on with it."""
    with cyrt.batch() as encoder:
        assert another(cyrt.current_encoder) is encoder
        encoder.add_kernel(x.kernel, 1, PART, (x.parts[0], 1.0, 1.0, PART))
        another(lambda: encoder.add_kernel(x.kernel, 1, PART, (x.parts[1], 1.0, 1.0, PART)))
        encoder.commit()
    x.check(1, 1, 0, 0)


# --- batch() ---


@pytest.fixture
def shared(x):
    """Its address was handed out: work on it is launched at once."""
    assert x.memory.ptr
    return x


@only_batches
def test_another_threads_work_is_launched_at_once(shared, another):
    """And what was recorded before goes with it; the block itself goes on as before."""
    with cyrt.batch() as encoder:
        shared.add(0)
        shared.add(1)
        assert encoder.num_ops == 2
        another(lambda: shared.add(0))
        assert encoder.num_ops == 0
        shared.add(2)
        assert encoder.num_ops == 1
    assert encoder.num_ops == 0
    shared.add(0)
    assert encoder.num_ops == 0
    shared.check(3, 1, 1, 0)


@only_batches
def test_batches_of_two_threads_on_one_stream(shared, another):
    """Each end launches all of it, and the other's block goes on."""
    theirs = another(cyrt.batch)
    with cyrt.batch() as encoder:
        shared.add(0)
        another(theirs.__enter__)
        another(lambda: shared.add(1))
        shared.add(2)
        assert encoder.num_ops == 2  # the beginning of a block launches what was recorded
        another(lambda: theirs.__exit__(None, None, None))
        assert encoder.num_ops == 0
        shared.add(3)
        assert encoder.num_ops == 1
        another(lambda: shared.add(3))
        assert encoder.num_ops == 0
        shared.add(3)
        assert encoder.num_ops == 1
    shared.check(1, 1, 1, 3)


@only_batches
def test_a_batch_inside_a_batch(shared):
    with cyrt.batch() as encoder:
        shared.add(0)
        with cyrt.batch():
            assert encoder.num_ops == 0
            shared.add(1)
            assert encoder.num_ops == 1
        assert encoder.num_ops == 0
        shared.add(2)
        assert encoder.num_ops == 1
    shared.add(3)
    assert encoder.num_ops == 0
    shared.check(1, 1, 1, 1)


@only_batches
def test_another_task_defers_nothing(shared, stream):
    counts = []

    async def main():
        inside, outside, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        encoder = cyrt.current_encoder()

        async def neighbour():
            await inside.wait()
            shared.add(0)
            counts.append(encoder.num_ops)
            outside.set()

        async def child():
            shared.add(1)
            counts.append(encoder.num_ops)
            await ended.wait()
            shared.add(1)
            counts.append(encoder.num_ops)

        def elsewhere():
            with stream:
                shared.add(2)
                counts.append(encoder.num_ops)

        task = asyncio.create_task(neighbour())
        with cyrt.batch():
            inside.set()
            await outside.wait()
            begun = asyncio.create_task(child())
            await asyncio.sleep(0)
            await asyncio.to_thread(elsewhere)
            shared.add(3)
            counts.append(encoder.num_ops)
        ended.set()
        await asyncio.gather(task, begun)

    asyncio.run(main())
    assert counts == [0, 1, 0, 1, 0]
    shared.check(1, 2, 1, 1)


@only_batches
@pytest.mark.parametrize("how", ["closed", "raised"])
def test_a_batch_that_ends_in_another_context(shared, how):
    context, generator = contextvars.copy_context(), suspended(cyrt.batch)
    encoder = cyrt.current_encoder()
    context.run(next, generator)
    context.run(shared.add, 0)
    assert encoder.num_ops == 1
    if how == "closed":
        generator.close()
    else:
        with pytest.raises(ZeroDivisionError):
            generator.throw(ZeroDivisionError)
    assert encoder.num_ops == 0
    context.run(shared.add, 1)
    shared.add(2)
    assert encoder.num_ops == 0
    shared.check(1, 1, 1, 0)


@only_batches
def test_groups_inside_a_batch_beside_another_threads_work(shared, another):
    with cyrt.batch() as encoder, cyrt.concurrent():
        shared.add(0)
        shared.add(1)
        another(lambda: shared.add(1))
        assert encoder.num_ops == 0
        shared.add(2)
        shared.add(3)
        assert encoder.num_ops == 2
    assert edges(encoder) == [(0, 2), (1, 2)]
    shared.check(1, 2, 1, 1)
