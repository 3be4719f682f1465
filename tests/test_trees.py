"""Nests: leaves and structures, and the errors for other nests."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from cyrt import trees


class Pair(NamedTuple):
    left: object
    right: object


@dataclass(frozen=True)
class Layer:
    weight: object
    bias: object = None
    name: object = field(init=False, default=7)


@dataclass(slots=True)
class Slots:
    a: object

    def __post_init__(self):
        raise AssertionError("a nest is built without __init__")


def slots(a):
    made = Slots.__new__(Slots)
    made.a = a
    return made


NESTS = [
    (1, [1], ["x"]),
    (None, [], []),
    ([], [], []),
    ({"b": 1, "a": [2, 3]}, [1, 2, 3], ["x['b']", "x['a'][0]", "x['a'][1]"]),
    (OrderedDict(z=1, y=2), [1, 2], ["x['z']", "x['y']"]),
    ((1, (2,), [None, 3]), [1, 2, 3], ["x[0]", "x[1][0]", "x[2][1]"]),
    (Pair(1, Pair(2, 3)), [1, 2, 3], ["x.left", "x.right.left", "x.right.right"]),
    (Layer({0: 1}, [2]), [1, 2, 7], ["x.weight[0]", "x.bias[0]", "x.name"]),
    (slots([5]), [5], ["x.a[0]"]),
]


@pytest.mark.parametrize(("nest", "leaves", "paths"), NESTS, ids=lambda each: str(each)[:20])
def test_a_nest_is_taken_apart_and_built_again(nest, leaves, paths):
    found, structure = trees.flatten(nest, int, "x")
    assert (found, structure.num_leaves, structure.paths("x")) == (leaves, len(leaves), paths)
    assert structure.flatten(nest, int, "x") == leaves
    assert trees.flatten(nest, int, "x")[1] == structure
    assert hash(trees.flatten(nest, int, "x")[1]) == hash(structure)
    again = structure.unflatten(leaves)
    assert again == nest
    assert type(again) is type(nest)
    doubled = structure.unflatten([str(leaf) for leaf in leaves])
    assert structure.flatten(doubled, str, "x") == [str(leaf) for leaf in leaves]


def test_a_leaf_may_be_a_nest_by_type():
    found, structure = trees.flatten([{"a": 1}, {}], dict, "x")
    assert found == [{"a": 1}, {}]
    assert structure.paths("x") == ["x[0]", "x[1]"]


def test_entries_of_another_dict_are_found_by_their_keys():
    _, structure = trees.flatten({"w": 1, "b": [2]}, int, "x")
    assert structure.flatten({"b": [20], "w": 10}, int, "y") == [10, 20]


def test_structures_differ_by_kind_type_keys_and_length():
    nests = [[1, 2], (1, 2), Pair(1, 2), {"a": 1, "b": 2}, {"a": 1, "c": 2}, [1], [[1], 2], 1, None]
    structures = [trees.flatten(nest, int, "x")[1] for nest in nests]
    assert len(set(structures)) == len(nests)
    assert structures[0] != 1


@pytest.mark.parametrize("other", [{1}, "text", 1.5, defaultdict(int, a=1), iter([]), range(3)])
def test_something_else_is_refused_with_its_path(other):
    with pytest.raises(
        TypeError, match=rf"params\['w'\]\[1\]: .* int, .* {type(other).__name__}(;|$)"
    ):
        trees.flatten({"w": [1, other]}, int, "params")


@pytest.mark.parametrize(
    ("nest", "error", "message"),
    [
        ({"w": [1, 2]}, ValueError, r"grads: keys are missing: \['b'\]$"),
        ({"w": [1, 2], "b": 1, "c": 2}, ValueError, r"grads: keys that are not expected: \['c'\]"),
        ({"w": [1], "b": 1}, ValueError, r"grads\['w'\]: expected a list of 2, got one of 1"),
        ({"w": (1, 2), "b": 1}, ValueError, r"grads\['w'\]: expected a list of 2, got tuple"),
        ({"w": None, "b": 1}, ValueError, r"grads\['w'\]: expected a list of 2, got None"),
        ({"w": [1, 2], "b": [1]}, ValueError, r"grads\['b'\]: expected a leaf, got list"),
        ({"w": [1, "a"], "b": 1}, TypeError, r"grads\['w'\]\[1\]: expected int, .* got str"),
        ({"w": {3}, "b": 1}, TypeError, r"grads\['w'\]: expected a list of 2, got set"),
        (3, ValueError, r"grads: expected a dict of 2, got int"),
    ],
)
def test_another_structure_is_refused_with_its_path(nest, error, message):
    _, structure = trees.flatten({"w": [1, 2], "b": 3}, int, "params")
    with pytest.raises(error, match=message):
        structure.flatten(nest, int, "grads")


def test_none_is_kept_for_none():
    _, structure = trees.flatten([None], int, "x")
    assert structure.flatten([None], int, "y") == []
    with pytest.raises(ValueError, match=r"y\[0\]: expected None, got int"):
        structure.flatten([1], int, "y")


@pytest.mark.parametrize("count", [1, 3])
def test_a_wrong_number_of_leaves_is_refused(count):
    _, structure = trees.flatten([1, 2], int, "x")
    with pytest.raises(ValueError, match=f"2 leaves was given {count}"):
        structure.unflatten(range(count))


def test_a_nest_that_contains_itself_is_refused():
    nest: list = []
    nest.append(nest)
    with pytest.raises(ValueError, match="100 levels deep; does it contain itself"):
        trees.flatten(nest, int, "x")
