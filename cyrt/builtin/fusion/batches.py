"""The fused plan of a batch: its kernels, the results that these need not write, and their code.

INVARIANTS
- The result of an operation is not written if its memory had another owner when the batch was
  launched, and no node that is not in the same kernel uses it afterwards.
- All operations of a kernel are in one unit, and units depend on one another without a cycle (see
  graph/partition).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from cyrt.builtin import background
from cyrt.builtin.fusion import Fused, Operation, Run, compile, describe, generate, key, load
from cyrt.builtin.fusion.generator import LARGE_LIMIT, LIMIT
from cyrt.builtin.fusion.run import MAX_OPERATIONS
from cyrt.driver.table import driver_info
from cyrt.graph.partition import READ, Units, Use, dependencies
from cyrt.logger import logger
from cyrt.runtime.device import Device
from cyrt.runtime.module import LoadedFunction

_OVERWRITE = 2
#: The most blocks of products that are one launch: those of PRODUCT_BLOCKS (params/matmul.h). More
#: would not run at the same time, and what follows from the first product would wait for the last.
MAX_PRODUCT_BLOCKS = 528
#: Functions that are kept loaded for other batches with the same operations, at most.
KEPT = 256
# The keys are the context and the source; the entry used longest ago is first.
_functions: dict[tuple[int, int, str], LoadedFunction] = {}


#: The node and the offset of an address in its parameters, that in the kernel's, the bits that must
#: be 0, and other nodes' addresses that must be equal.
_Address = tuple[int, int, int, int, list[tuple[int, int]]]


class FusedKernel(NamedTuple):
    """A kernel of a fused plan."""

    fused: Fused
    unwritten: list[int]  # the nodes whose results nobody can see, which it does not write


def fuse(fusion: Any) -> None:
    """Find what can be one kernel in a batch, compile that, and let the fused plan be launched."""
    begin = time.perf_counter()
    batch = _Batch(fusion.describe(), _limit(fusion.device))
    kernels = batch.kernels()
    found = time.perf_counter()
    reasons = _count(fusion.names, batch.reasons)
    if not kernels:
        fusion.reject("no two of them can be one kernel" + (f" ({reasons})" if reasons else ""))
    functions = {}
    for each in kernels:
        if not fusion.wanted:
            return
        functions[each.fused.nodes[0]] = _function(each.fused, fusion)
    end = time.perf_counter()
    units = batch.plan(kernels, functions)
    if kernels:
        fusion.complete(units, sum(each.fused.saved for each in kernels), end - begin)
    logger.debug(
        "%s; %.3f s of that to find the kernels%s",
        fusion.outcome,
        found - begin,
        f"; not in them: {reasons}" if kernels and reasons else "",
    )


def _count(names: Sequence[str], reasons: Mapping[int, str]) -> str:
    """Return which operations are not fused, how many of each kind, and why, as a text."""
    counted = Counter((names[node], reason) for node, reason in reasons.items())
    return ", ".join(f"{n} × {name}: {reason}" for (name, reason), n in counted.items())


def _product_blocks(runs: Sequence[Run]) -> int:
    """Return how many blocks compute the products of runs."""
    return sum(run.product.grid[0] for run in runs if run.product is not None)


def _limit(device: Device) -> int:
    if device.emulated or device.compute_capability < (7, 0) or driver_info()[2] < 12010:
        return LIMIT
    return LARGE_LIMIT


def _function(fused: Fused, fusion: Any) -> LoadedFunction:
    """Return the function of a kernel; equal kernels have one."""
    at = fusion.device.index, fusion.epoch, fused.source
    function = _functions.pop(at, None)
    if function is None:
        code = background.at_low_priority(compile, fused, fusion.device)
        function = load(fused, code, fusion.device)
    _functions[at] = function
    if len(_functions) > KEPT:
        del _functions[next(iter(_functions))]
    return function


class _Batch:
    """The nodes of a batch, and the runs of operations among them."""

    def __init__(self, nodes: Sequence[tuple[Any, ...]], limit: int) -> None:
        self.limit = limit
        self.uses: list[list[Use]] = [node[5] for node in nodes]
        self.operations: dict[int, Operation] = {}
        self.reasons: dict[int, str] = {}  # why other nodes are no operations that can be fused
        for index, (serial, params, grid, block, smem, uses) in enumerate(nodes):
            if serial is None:
                self.reasons[index] = "no plain kernel"
                continue
            reads = tuple((use[4], use[4] + use[5]) for use in uses if use[2] == READ)
            try:
                self.operations[index] = describe(serial, params, grid, block, smem, reads)
            except ValueError as error:
                self.reasons[index] = str(error)
        self.depends = dependencies(self.uses)
        self.units = Units(self.depends)
        self.runs: dict[int, Run] = {}  # the run of each unit that has one
        # Pairs of runs that cannot be one, each by its unit and the number of its operations.
        self.refused: set[tuple[int, int, int, int]] = set()

    def kernels(self) -> list[FusedKernel]:
        """Return the kernels of more than one operation."""
        self._find_runs()
        return [kernel for runs in self._sets() for kernel in self._generate(runs)]

    def plan(
        self, kernels: Sequence[FusedKernel], functions: Mapping[int, LoadedFunction]
    ) -> list[tuple[Any, list[int]]]:
        """Return the nodes of the fused plan, as `Fusion.complete` takes them. `functions` has the
        function of each kernel, by its first node."""
        units = Units(self.depends)
        inside = {units.join(each.fused.nodes): each for each in kernels}
        found: list[tuple[Any, list[int]]] = []
        for unit, sources in units.ordered():
            kernel = inside.get(unit)
            if kernel is None:
                found.append((unit, sources))
                continue
            fused = kernel.fused
            numbers = [
                (each.node, each.source, each.target, each.size)
                for each in fused.copies
                if each.address is None
            ]
            addresses = self._addresses(fused)
            found.append(
                (
                    (
                        functions[fused.nodes[0]],
                        fused.params,
                        fused.grid,
                        fused.block,
                        fused.smem,
                        fused.nodes,
                        numbers,
                        addresses,
                        kernel.unwritten,
                    ),
                    sources,
                )
            )
        return found

    def _addresses(self, fused: Fused) -> list[_Address]:
        """Return the addresses of blocks that a kernel only reads, which may change."""
        written = {
            (use[4], use[4] + use[5])
            for node in fused.nodes
            for use in self.uses[node]
            if use[2] != READ
        }
        masks = dict(fused.aligned)
        readers: dict[int, list[tuple[int, int]]] = {}  # what reads at each address
        for node in fused.nodes:
            for address, word in self.operations[node].addresses:
                readers.setdefault(address, []).append((node, word))
        found = []
        for copy in fused.copies:
            if copy.address is None or any(start <= copy.address < end for start, end in written):
                continue
            own = copy.node, copy.source
            equal = [each for each in readers[copy.address] if each != own]
            found.append((*own, copy.target, masks.get(copy.target, 0), equal))
        return found

    # -- runs --

    def _find_runs(self) -> None:
        """Join each operation, in recorded order, to those that it takes operands from or shares
        them with."""
        users: dict[int, list[int]] = {}  # the operations so far by the blocks that they use
        for node, operation in self.operations.items():
            run = Run()
            if run.add(node, operation):
                self.runs[node] = run
                near = dict.fromkeys(sorted(self.depends[node], reverse=True))
                for block, *_ in self.uses[node]:
                    near |= dict.fromkeys(reversed(users.get(block, ())))
                for other in near:
                    if other in self.operations:
                        self._join(node, other)
            for block, *_ in self.uses[node]:
                users.setdefault(block, []).append(node)

    def _join(self, node: int, other: int) -> None:
        one, two = self.units.unit_of(other), self.units.unit_of(node)
        if one == two or one not in self.runs or two not in self.runs:
            return
        if not self.units.may_join((one, two)):
            return
        run = self.runs[one]
        nodes, added = run.nodes, self.runs[two].nodes
        pair = one, len(nodes), two, len(added)
        if pair in self.refused or len(nodes) + len(added) > MAX_OPERATIONS:
            return
        if len(added) > 1 or nodes[-1] > node:
            run, added = Run(), sorted(nodes + added)
        for each in added:
            if not run.add(each, self.operations[each]):
                self.refused.add(pair)
                return
        unit = self.units.join((one, two))
        del self.runs[one], self.runs[two]
        self.runs[unit] = run

    def _stored(self, run: Run) -> frozenset[int]:
        """Return the nodes whose results the launch stores. If nobody can see any of them, what
        the operations end with is stored, so that they are one kernel all the same."""
        inside = set(run.nodes)
        seen = frozenset(node for node in run.outputs if self._is_seen(node, inside))
        return seen or frozenset(run.outputs & run.ends)

    def _is_seen(self, node: int, inside: Collection[int]) -> bool:
        for block, generation, access, dead, *_ in self.uses[node]:
            if access == READ:
                continue
            if not dead:
                return True
            for other in range(node + 1, len(self.uses)):
                if other not in inside and any(
                    use[0] == block and use[1] == generation and use[2] != _OVERWRITE
                    for use in self.uses[other]
                ):
                    return True
        return False

    # -- kernels --

    def _sets(self) -> list[list[Run]]:
        """Return sets of runs that can be one launch: of one kind, and without order."""
        kinds: dict[str, list[Run]] = {}
        found: list[list[Run]] = []
        for run in self.runs.values():
            stored = self._stored(run)
            kind = key(run, stored) if stored else None
            if kind is not None:
                kinds.setdefault(kind, []).append(run)
        for runs in kinds.values():
            sets: list[list[Run]] = []
            for run in runs:
                for each in sets:
                    if (
                        not any(self._are_ordered(run, other) for other in each)
                        and _product_blocks([*each, run]) <= MAX_PRODUCT_BLOCKS
                        and self.units.may_join([self._unit(other) for other in (*each, run)])
                    ):
                        each.append(run)
                        break
                else:
                    sets.append([run])
            for each in sets:
                self.units.join({self._unit(run) for run in each})
            found += sets
        return found

    def _unit(self, run: Run) -> int:
        return self.units.unit_of(run.nodes[0])

    def _are_ordered(self, one: Run, other: Run) -> bool:
        return self.units.are_ordered(self._unit(one), self._unit(other))

    def _generate(self, runs: Sequence[Run]) -> list[FusedKernel]:
        """Return the kernel of runs that can be one launch; more, or none, if it exceeds limits."""
        if sum(len(run.nodes) for run in runs) < 2:
            return []
        stored = [self._stored(run) for run in runs]
        fused = generate(runs, stored, self.limit)
        if fused is not None:
            unwritten = [
                node for run, each in zip(runs, stored, strict=True) for node in run.outputs - each
            ]
            return [FusedKernel(fused, unwritten)]
        half = len(runs) // 2
        return self._generate(runs[:half]) + self._generate(runs[half:]) if half else []
