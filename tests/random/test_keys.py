"""Keys: Philox's published answers, splitting, the process's own sequence."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

from cyrt import random
from cyrt.builtin.random import philox

# Random123's kat_vectors, philox4x32 10: counter, key, answer.
KNOWN = [
    ((0, 0, 0, 0), 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((0xFFFFFFFF,) * 4, (1 << 64) - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        0x299F31D0A4093822,
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN, ids=["zeros", "ones", "pi"])
def test_philox_on_the_host_gives_the_published_answers(counter, key, answer):
    assert [f"{word:08x}" for word in philox(counter, key)] == answer.split()


def test_philox_on_the_device_is_that_of_the_host():
    for key in (0, (1 << 64) - 1, 0x299F31D0A4093822):
        # All bits of integers of the type's whole range: word i % 4 of block i // 4.
        found = random.randint(0, 1 << 32, 4103, dtype="uint32", key=random.key(key)).numpy()
        wanted = [philox((block, 0, 0, 0), key) for block in range(1026)]
        np.testing.assert_array_equal(found, np.array(wanted, np.uint32).ravel()[:4103])


def test_keys_are_values():
    key = random.key(7)
    assert key == random.key(7) != random.key(8)
    assert {key: 1}[random.key(7)] == 1
    assert pickle.loads(pickle.dumps(key)) == key
    assert random.key(-1) == random.key((1 << 64) - 1)
    assert repr(key) == "Key(0x0000000000000007)"
    with pytest.raises(AttributeError):
        key.bits = 3


def test_split_keys_differ_and_do_not_depend_on_their_number():
    parent = random.key(3)
    keys = random.split(parent, 1000)
    assert len({parent, *keys, *random.split(keys[0], 1000)}) == 2001
    assert random.split(parent) == keys[:2]
    assert random.split(parent, 0) == ()
    # Nor are they the numbers drawn with the key.
    drawn = set(random.randint(-(1 << 63), 1 << 63, 1000, key=parent).numpy().view(np.uint64))
    assert drawn.isdisjoint(key.bits for key in keys)


def test_keys_that_numbers_are_folded_into():
    parent = random.key(3)
    keys = [random.fold_in(parent, data) for data in (0, 1, 2, 1 << 32, -1)]
    assert len({parent, *keys, *random.split(parent, 1000)}) == 1006
    assert random.fold_in(parent, 1) == keys[1] != random.fold_in(random.key(4), 1)
    assert keys[-1] == random.fold_in(parent, (1 << 64) - 1)
    low, high, _, _ = philox((1, 0, 0, 4), 3)
    assert keys[1] == random.Key(high << 32 | low)
    assert random.fold_in(random.fold_in(parent, 1), 2) != random.fold_in(
        random.fold_in(parent, 2), 1
    )
    for data, error in ((1.0, TypeError), (True, TypeError), (1 << 64, ValueError)):
        with pytest.raises(error, match="fold_in: data: expected an int"):
            random.fold_in(parent, data)
    with pytest.raises(TypeError, match="fold_in: key: expected a Key"):
        random.fold_in(7, 1)


@pytest.mark.parametrize(
    ("function", "args", "names"),
    [
        (random.normal, ((3,),), "loc, scale, shape"),
        (random.uniform, ((3,),), "low, high, shape"),
        (random.randint, ((3,), 0, 5), "low, high, shape"),
        (random.bernoulli, (0.5, (3,)), "p, shape"),
        (random.permutation, (5,), "x"),
        (random.gamma, (2.0,), "shape, scale, size"),
        (random.rand, (3,), "shape"),
        (random.random, (), "size"),
    ],
)
def test_a_key_by_position_is_refused_with_the_order(function, args, names):
    name = function.__name__
    message = rf"{name}: the key is given by name, {name}\(..., key=key\); .* position are {names}$"
    with pytest.raises(TypeError, match=message):
        function(random.key(1), *args)


def test_the_process_sequence_begins_anew():
    def some():
        return [random.uniform(shape=5).numpy().tolist() for _ in range(3)]

    random.seed(11)
    first, then = some(), some()
    random.seed(11)
    assert some() == first
    assert len({str(each) for each in first + then}) == 6
    random.seed(12)
    assert some() != first


def test_each_call_of_several_threads_has_a_key_of_its_own():
    random.seed(5)
    found = []

    def work():
        for _ in range(50):
            found.append(random.randint(0, 1 << 62).item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    random.seed(5)
    assert sorted(found) == sorted(random.randint(0, 1 << 62).item() for _ in range(200))


def test_unseeded_processes_differ(python):
    program = "from cyrt import random; print(random.randint(0, 1 << 62).item())"
    assert python(program).stdout != python(program).stdout != ""


def test_bad_keys_and_seeds_are_refused():
    for bad in (7, "7", np.zeros(2)):
        with pytest.raises(TypeError, match="expected a Key, made by"):
            random.uniform(key=bad)
        with pytest.raises(TypeError, match="expected a Key, made by"):
            random.split(bad)
    with pytest.raises(TypeError, match="expected a Key"):
        random.split(None)
    for bad in (1.5, "a", None, True):
        with pytest.raises(TypeError, match="seed: expected an int"):
            random.key(bad)
    with pytest.raises(ValueError, match="64 bits"):
        random.seed(1 << 64)
    with pytest.raises(ValueError, match="n: expected 0 or more, got -1"):
        random.split(random.key(0), -1)
    with pytest.raises(TypeError, match="n: expected an int"):
        random.split(random.key(0), 1.0)
