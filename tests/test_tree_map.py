"""tree_map: a function of the leaves of nests."""

from dataclasses import dataclass
from typing import NamedTuple

import pytest

import cyrt


class Pair(NamedTuple):
    a: object
    b: object


@dataclass
class Layer:
    w: object
    b: object


def test_leaves_keep_their_places():
    nest = {"w": 1, "b": [2, None, (3, Pair(4, "x"))], "layer": Layer(5, 6)}
    found = cyrt.tree_map(lambda leaf: [leaf], nest)
    assert found == {"w": [1], "b": [[2], None, ([3], Pair([4], ["x"]))], "layer": Layer([5], [6])}


def test_others_have_nests_where_the_first_has_leaves():
    assert cyrt.tree_map(lambda a, b, c: (a, b, c), [1, 2], [3, {"k": 4}], [5, 6]) == [
        (1, 3, 5),
        (2, {"k": 4}, 6),
    ]


def test_others_of_another_structure():
    with pytest.raises(ValueError, match=r"others\[1\]: keys are missing: \['b'\]"):
        cyrt.tree_map(max, {"a": 1, "b": 2}, {"a": 1, "b": 2}, {"a": 1})
    with pytest.raises(TypeError, match="the order is tree_map"):
        cyrt.tree_map({"a": 1}, max)


def test_gradients_pass():
    def loss(params):
        doubled = cyrt.tree_map(lambda p: 2 * p, params)
        return doubled["w"].sum() + doubled["b"][0].sum()

    grads = cyrt.grad(loss)({"w": cyrt.ones(2), "b": [cyrt.ones(1)]})
    assert grads["w"].tolist() == [2, 2]
    assert grads["b"][0].tolist() == [2]
