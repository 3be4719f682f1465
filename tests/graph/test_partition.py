"""Units of a batch: what may be one, and the order of all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyrt.graph.partition import Units, bits, dependencies

READ, WRITE, OVERWRITE = range(3)


def uses(*accesses):
    return [[(block, 0, access, False, 0, 0) for block, access in each] for each in accesses]


def test_dependencies():
    batch = uses(
        [(1, OVERWRITE)],
        [(1, READ), (2, OVERWRITE)],
        [(1, READ), (3, OVERWRITE)],
        [(1, WRITE)],
        [(2, READ), (3, READ)],
        [(1, READ), (1, WRITE)],
    )
    assert dependencies(batch) == [set(), {0}, {0}, {0, 1, 2}, {1, 2}, {3}]


def test_a_path_through_another_unit():
    units = Units([set(), {0}, {0, 1}])
    assert units.may_join((0, 1))
    assert not units.may_join((0, 2))
    assert units.are_ordered(0, 2)
    assert units.join((1, 2)) == 1
    assert units.may_join((0, 1))
    assert units.members(1) == [1, 2]


def test_units_that_would_depend_on_one_another():
    """Two sets without order among their members: each may be a unit, but not both."""
    units = Units([set(), set(), {0}, {1}])
    assert units.may_join((0, 3))
    units.join((0, 3))
    assert not units.may_join((1, 2))


graph = st.integers(1, 14).flatmap(
    lambda n: st.tuples(
        *(st.sets(st.integers(0, i - 1)) if i else st.just(set()) for i in range(n))
    )
)


@given(graph, st.lists(st.sets(st.integers(0, 13), min_size=2, max_size=4), max_size=12))
def test_units_have_an_order(depends, wanted):
    units = Units(depends)
    for each in wanted:
        chosen = {units.unit_of(node) for node in each if node < len(depends)}
        if len(chosen) > 1 and units.may_join(chosen):
            units.join(chosen)
    order = units.ordered()
    place = {}
    for index, (unit, sources) in enumerate(order):
        assert all(source < index for source in sources)
        place |= dict.fromkeys(units.members(unit), index)
    assert sorted(place) == list(range(len(depends)))
    for node, needed in enumerate(depends):
        for each in needed:
            assert place[each] == place[node] or place[each] in order[place[node]][1]


@given(graph)
def test_what_may_not_be_joined_has_a_cycle(depends):
    """`may_join` refuses no more than it must."""
    count = len(depends)
    after = [{other for other in range(count) if node in depends[other]} for node in range(count)]

    def reaches(start, end):
        seen, left = set(), [start]
        while left:
            node = left.pop()
            if node == end:
                return True
            if node not in seen:
                seen.add(node)
                left += after[node]
        return False

    units = Units(depends)
    for one in range(count):
        for other in range(one + 1, count):
            through = any(
                reaches(one, each) and reaches(each, other)
                for each in range(count)
                if each not in (one, other)
            )
            assert units.may_join((one, other)) == (not through)


def test_bits():
    assert list(bits(0b101001)) == [0, 3, 5]
    assert not list(bits(0))


@pytest.mark.parametrize("count", [1, 64, 300])
def test_a_long_chain_is_one_unit(count):
    units = Units([{i - 1} if i else set() for i in range(count)])
    for i in range(1, count):
        units.join((0, i))
    assert units.ordered() == [(0, [])]
