"""Units of a batch: nodes that run as one, in an order without a cycle.

INVARIANTS
- A node depends on the nodes that wrote the memory that it uses and, if it writes that memory, on
  the nodes that have read it since. The edges of a recording order nodes more strictly than this.
- Units depend on one another without a cycle. So units are joined only if no path leads from one of
  them to another through a third one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

READ = 0
#: A use of a block: ``(block, generation, access, dead, address, size)``; see ``Fusion.describe``.
Use = tuple[int, int, int, bool, int, int]


def dependencies(uses: Iterable[Iterable[Use]]) -> list[set[int]]:
    """Return, for the uses of each node, the nodes that it depends on."""
    writers: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    found = []
    for node, each in enumerate(uses):
        needed: set[int] = set()
        for block, _, access, *_ in each:
            if block in writers:
                needed.add(writers[block])
            if access != READ:
                needed.update(readers.get(block, ()))
        for block, _, access, *_ in each:
            if access == READ:
                readers.setdefault(block, []).append(node)
            else:
                writers[block], readers[block] = node, []
        needed.discard(node)
        found.append(needed)
    return found


class Units:
    """The units of a batch, which are joined step by step.

    Parameters
    ----------
    dependencies : sequence of collections of int
        For each node, in recorded order, those before it that it depends on. Each node is a unit at
        first; a unit is known by its first node.
    """

    def __init__(self, dependencies: Sequence[Collection[int]]) -> None:
        self._of = list(range(len(dependencies)))  # each node's unit
        self._direct = [self._mask(each) for each in dependencies]
        self._before: dict[int, int] = {}  # all units that a unit depends on, as bits
        for node, direct in enumerate(self._direct):
            self._before[node] = direct
            for each in bits(direct):
                self._before[node] |= self._before[each]

    @staticmethod
    def _mask(numbers: Iterable[int]) -> int:
        found = 0
        for each in numbers:
            found |= 1 << each
        return found

    def unit_of(self, node: int) -> int:
        """Return the unit that a node belongs to."""
        return self._of[node]

    def members(self, unit: int) -> list[int]:
        """Return the nodes of a unit, in recorded order."""
        return [node for node, each in enumerate(self._of) if each == unit]

    def are_ordered(self, one: int, other: int) -> bool:
        """Return whether one of the units depends on the other."""
        return bool(self._before[one] >> other & 1 or self._before[other] >> one & 1)

    def may_join(self, units: Collection[int]) -> bool:
        """Return whether no path leads from one of the units to another through a third one."""
        joined = self._mask(units)
        before = 0
        for each in units:
            before |= self._before[each]
        return not any(self._before[each] & joined for each in bits(before & ~joined))

    def join(self, units: Collection[int]) -> int:
        """Make units one, and return it; `may_join` has allowed it."""
        first, joined = min(units), self._mask(units)
        before = direct = 0
        for each in units:
            before |= self._before.pop(each)
            direct |= self._direct[each]
        before &= ~joined
        self._before[first], self._direct[first] = before, direct & ~joined
        for unit, known in self._before.items():
            if known & joined:
                self._before[unit] = known & ~joined | 1 << first | before
            if self._direct[unit] & joined:
                self._direct[unit] = self._direct[unit] & ~joined | 1 << first
        self._of = [first if joined >> each & 1 else each for each in self._of]
        return first

    def ordered(self) -> list[tuple[int, list[int]]]:
        """Return each unit, behind all those that it depends on, and the indices of those that it
        depends on directly."""
        left = dict.fromkeys(self._before)
        found: dict[int, int] = {}
        order: list[tuple[int, list[int]]] = []
        done = 0
        while left:
            unit = next(each for each in left if not self._before[each] & ~done)
            del left[unit]
            done |= 1 << unit
            found[unit] = len(order)
            order.append((unit, sorted(found[each] for each in bits(self._direct[unit]))))
        return order


def bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
