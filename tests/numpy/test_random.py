"""NumPy's names of random functions, and its generator."""

import sys
import threading

import numpy as np
import pytest

import cyrt
from cyrt import random
from cyrt.numpy import random as random_names


def test_size_is_the_shape():
    key = random.key(3)
    for function, given in (
        (random.uniform, (-1, 2)),
        (random.normal, (1.0, 0.5)),
        (random.randint, (2, 9)),
    ):
        found = function(*given, size=(3, 4), key=key)
        np.testing.assert_array_equal(found.numpy(), function(*given, (3, 4), key=key).numpy())
    found = random.randint(5, size=1000, key=key).numpy()
    np.testing.assert_array_equal(found, random.randint(0, 5, 1000, key=key).numpy())


def test_they_are_the_others_by_name():
    random.seed(5)
    found = [
        random.rand(2, 3),
        random.randn(4),
        random.random((2, 2)),
        random.random(),
        random.standard_normal(3),
    ]
    random.seed(5)
    wanted = [
        random.uniform(shape=(2, 3)),
        random.normal(shape=(4,)),
        random.uniform(shape=(2, 2)),
        random.uniform(),
        random.normal(shape=(3,)),
    ]
    for each, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(each.numpy(), other.numpy(), strict=True)


def test_exponential():
    x = random.exponential(2.0, 40_000, key=random.key(1)).numpy()
    assert x.min() >= 0
    assert abs(x.mean() - 2) < 0.04
    assert abs(np.mean(x > 2) - np.exp(-1)) < 0.01
    scale = cyrt.asarray([1.0, 100.0])
    assert random.exponential(scale).shape == (2,)
    assert (
        random.exponential(scale, (9000, 2), key=random.key(1)).mean(0) / scale
    ).numpy() == pytest.approx(1, abs=0.05)


def test_they_take_a_device_a_type_and_a_key():
    key, more = random.key(1), {"device": 0, "dtype": "float64"}
    for found, wanted in (
        (random.rand(2, 3, key=key, **more), random.uniform(shape=(2, 3), key=key, **more)),
        (random.randn(4, key=key, **more), random.normal(shape=4, key=key, **more)),
        (random.random(4, key=key, **more), random.uniform(shape=4, key=key, **more)),
        (random.standard_normal(4, key=key, **more), random.normal(shape=4, key=key, **more)),
    ):
        np.testing.assert_array_equal(found.numpy(), wanted.numpy(), strict=True)
    assert random.exponential(size=3, key=key, device="cuda:0").device == cyrt.Device(0)
    assert random.choice(5, 3, key=key, device=0).device == cyrt.Device(0)
    for call in (random.rand, random.random, random.standard_normal, random.exponential):
        with pytest.raises(Exception, match="99"):
            call(device=99)


def test_choice_with_replacement():
    a = cyrt.asarray([[1, 2], [3, 4], [5, 6]])
    found = random.choice(a, (4, 5))
    assert found.shape == (4, 5, 2)
    assert {tuple(each) for each in found.numpy().reshape(-1, 2).tolist()} <= {
        (1, 2),
        (3, 4),
        (5, 6),
    }
    counts = np.bincount(random.choice(4, 40_000, key=random.key(2)).numpy())
    np.testing.assert_allclose(counts, 10_000, atol=400)
    assert random.choice([7, 7.5]).item() in (7, 7.5)
    assert random.choice(3).shape == ()


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_choice_by_probability(dtype):
    p = np.array([0.0, 0.25, 0.0, 0.5, 0.25, 0.0])
    found = random.choice(6, 40_000, p=cyrt.asarray(p, dtype=dtype), key=random.key(4)).numpy()
    counts = np.bincount(found, minlength=6)
    assert counts[p == 0].tolist() == [0, 0, 0]
    np.testing.assert_allclose(counts, 40_000 * p, atol=500)
    assert random.choice(2, p=[0, 1]).item() == 1


@pytest.mark.parametrize("place", [list, tuple, cyrt.asarray])
@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([0.5, 0.2, 0.2], "probabilities whose sum is 1, got 0"),
        ([5.0, 3.0, 2.0], "probabilities whose sum is 1, got 10"),
        ([0.0, 0.0, 0.0], "probabilities whose sum is 1, got 0.0"),
        ([1.5, -0.5, 0.0], "probabilities of 0 or more, got -0.5 at index 1"),
        ([0.5, float("nan"), 0.5], "probabilities of 0 or more, got nan at index 1"),
        ([0.5, 0.5, float("inf")], "probabilities whose sum is 1, got inf"),
    ],
)
def test_choice_checks_probabilities(place, p, message):
    """As NumPy does, and wherever they are."""
    with pytest.raises(ValueError, match=r".*robabilities"):
        np.random.default_rng(0).choice(3, p=p)
    for choice in (random.choice, random.default_rng(0).choice):
        with pytest.raises(ValueError, match=f"choice: p: expected {message}"):
            choice(3, p=place(p))


def test_choice_names_what_it_refuses():
    for a in (3.0, True):
        with pytest.raises(TypeError, match="choice: a: expected an int, got (float|bool)"):
            random.choice(a)
    for p in ([1j, 0], cyrt.asarray([1j, 0])):
        with pytest.raises(TypeError, match="choice: p: expected a real type, got complex"):
            random.choice(2, p=p)


def test_choice_forgives_rounding():
    for name in ("float16", "bfloat16", "float32", "float64"):
        p = cyrt.full(7, 1 / 7, dtype=name)
        assert 0 <= random.choice(7, p=p).item() < 7
    assert 0 <= random.choice(10, p=[0.1] * 10).item() < 10
    assert random.choice(2, p=cyrt.asarray([0, 1])).item() == 1
    with pytest.raises(ValueError, match="sum is 1"):
        random.choice(2, p=[0.5, 0.5001])


def test_choice_without_replacement():
    for n, size in ((5, 5), (100, (3, 4)), (4, ()), (3, 0)):
        found = random.choice(n, size, replace=False).numpy()
        assert found.shape == (size if isinstance(size, tuple) else (size,))
        assert len(set(found.reshape(-1).tolist())) == found.size
        assert set(found.reshape(-1).tolist()) <= set(range(n))


def test_shuffle_is_in_place():
    x = cyrt.arange(24).reshape(2, 12)
    same, key = x, random.key(9)
    wanted = random.permutation(x, axis=1, key=key).numpy()
    assert random.shuffle(x, 1, key=key) is None
    np.testing.assert_array_equal(same.numpy(), wanted)
    assert not np.array_equal(wanted, np.arange(24).reshape(2, 12))


def test_a_generator_is_a_function_of_its_seed():
    def numbers(rng):
        a = cyrt.arange(10)
        rng.shuffle(a)
        return [
            rng.random((2, 3)),
            rng.random(3, "float64"),
            rng.uniform(-1, 1, 4),
            rng.normal(size=(2,)),
            rng.standard_normal(2),
            rng.exponential(2.0, 3),
            rng.integers(7, size=5),
            rng.integers(2, 4, 50, endpoint=True),
            rng.choice(5, 3),
            rng.permutation(6),
            a,
        ]

    first, again = numbers(random.default_rng(1)), numbers(random.default_rng(1))
    other = numbers(random.default_rng(2))
    for each, same, another in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(each.numpy(), same.numpy(), strict=True)
        assert each.shape == another.shape
    assert any(a.tolist() != b.tolist() for a, b in zip(first, other, strict=True))
    assert sorted(set(first[7].tolist())) == [2, 3, 4]
    rng = random.default_rng(1)
    assert rng.random(4).tolist() != rng.random(4).tolist()
    assert random.default_rng().random(4).tolist() != random.default_rng().random(4).tolist()


def test_threads_share_a_generator(monkeypatch):
    rng = random.default_rng(1)
    keys = [[] for _ in range(3)]
    monkeypatch.setattr(random_names, "uniform", lambda key, **_: key)

    def draw(found):
        found.extend(rng.random() for _ in range(2000))

    threads = [threading.Thread(target=draw, args=(each,)) for each in keys]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(set().union(*keys)) == 6000


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random.choice(0), ValueError, "choice: a: expected 1 or more .* got 0"),
        (lambda: random.choice(3, 4, replace=False), ValueError, "4 of 3 elements"),
        (
            lambda: random.choice(3, -1, replace=False),
            ValueError,
            "size: expected 0 or more, got -1",
        ),
        (lambda: random.choice(3, p=[0.5, 0.5]), ValueError, r"shape \(3,\), got \(2,\)"),
        (lambda: random.choice(2, 2, False, [1.0, 0.0]), ValueError, "from 1 whose probability"),
        (lambda: random.choice(2.5), TypeError, "float"),
        (lambda: random.choice(np.arange(3)), TypeError, "choice: a: expected an Array, got numpy"),
        (
            lambda: random.exponential(-1),
            ValueError,
            "exponential: scale: expected 0 or more, got -1",
        ),
        (lambda: random.exponential("a"), TypeError, "exponential: scale: expected a number"),
        (lambda: random.shuffle([1, 2]), TypeError, "shuffle: expected an Array"),
        (lambda: random.default_rng("1"), TypeError, "seed: expected an int, got '1'"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
