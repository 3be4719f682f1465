"""The source of a fused kernel, its parameters and its geometry, from runs of operations.

INVARIANTS
- Equal runs give equal text: addresses, sizes, strides and numbers are parameters. What is compiled
  in are the operations, their types, which values they share, which of them are stored, and along
  which dimensions an operand's stride is 0, or 1 along the innermost one.
- A value in registers has its element type, rounded as if it had been stored and loaded.
- Every parameter that a node's own parameters hold is copied from there, byte for byte.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from struct import pack, pack_into

from cyrt.builtin.fusion.description import Access
from cyrt.builtin.fusion.run import Run, Value, shape_of, strides_in
from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

#: Bytes of a vector that a thread loads.
VECTOR_BYTES = 16
#: Elements up to which a thread has one: all of them have a thread to themselves, and the fewer
#: instructions a thread executes the sooner it ends.
SMALL = 1 << 14
#: Words of 4 bytes that the values of a thread take at most, else it has fewer elements.
MAX_WORDS = 128
#: Threads of a block, for arrays up to SMALL elements and for others; the least.
SMALL_BLOCK, BLOCK, WARP = 128, 256, 32
#: What a kernel divides, at most (params/space.h).
MAX_NUMERATOR = 0x7FFFFFFF
#: The bytes of a kernel's parameters that every driver takes.
MAX_PARAMETERS = 4096


@dataclass(frozen=True, slots=True)
class Copy:
    """Bytes of a node's parameters that the fused kernel's have too."""

    node: int
    source: int
    size: int
    target: int


@dataclass(frozen=True, slots=True)
class Fused:
    """A kernel of several operations, and its launch.

    Attributes
    ----------
    source : str
        CUDA C++.
    name : str
        The kernel's name.
    params : bytes
        Its packed parameters: one struct.
    copies : tuple of Copy
        Which of those bytes are copies from the nodes' parameters.
    aligned : tuple of (int, int)
        Offsets of addresses in the parameters, each with the bits that must be 0.
    grid, block : tuple of int
        The geometry.
    nodes : tuple of int
        The nodes whose work it does.
    saved : int
        The bytes that those read and write and it does not.
    """

    source: str
    name: str
    params: bytes
    copies: tuple[Copy, ...]
    aligned: tuple[tuple[int, int], ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    nodes: tuple[int, ...]
    saved: int


@dataclass(frozen=True, slots=True)
class _Field:
    """A member of the struct of a part's parameters."""

    cpp: str
    name: str
    size: int
    content: bytes
    copy: tuple[int, int] | None = None  # the node, and the offset in its parameters
    mask: int = 0  # the bits of an address that must be 0


@dataclass(slots=True)
class _Part:
    """What a run becomes in a launch: text, which equal runs share, and numbers."""

    text: str = ""
    fields: list[_Field] = field(default_factory=list)
    threads: int = 0


def generate(
    runs: Sequence[Run], stored: Sequence[Collection[int]], limit: int = MAX_PARAMETERS
) -> Fused | None:
    """Return the kernel of a run, or of several that have one key; None if it exceeds the limits.

    Parameters
    ----------
    runs : sequence of Run
        Independent of one another.
    stored : sequence of collections of int
        The nodes of each run whose results are stored.
    limit : int
        The most bytes of parameters.
    """
    parts = [_part(run, each) for run, each in zip(runs, stored, strict=True)]
    if any(part is None for part in parts):
        return None
    kept = [part for part in parts if part is not None]
    if len({part.text for part in kept}) != 1:
        raise ValueError("the runs of a launch have one key")
    return _assemble(kept, runs, stored, limit)


def key(run: Run, stored: Collection[int]) -> str | None:
    """Return what runs have in common that can be one launch; None: the run exceeds the limits."""
    part = _part(run, stored)
    return part.text if part is not None else None


# -- a part ----------------------------------------------------------------------------------------


def _part(run: Run, stored: Collection[int]) -> _Part | None:
    needed, outputs = run.needed(stored), set(run.stored_values(stored))
    values = run.values
    memory = [
        values[i]
        for i in needed
        if values[i].access.address is not None and (values[i].operation is None or i in outputs)
    ]
    shape = shape_of([value.access.layout for value in memory], run.size)
    items = _items(run, needed, memory, shape)
    if items is None or run.size // items > MAX_NUMERATOR:
        return None
    return _Writer(run, needed, outputs, memory, shape, items).part


def _items(run: Run, needed: list[int], memory: list[Value], shape: tuple[int, ...]) -> int | None:
    """Return how many elements a thread has: those of a vector, or one."""
    words = peak_words(run, needed)
    if words > MAX_WORDS:
        return None
    arrays = [value.access for value in memory if not value.access.single]
    items = VECTOR_BYTES // max([2, *(each.itemsize for each in arrays)])
    if run.size <= SMALL or not shape or shape[0] % items:
        return 1
    for each in arrays:
        inner, *outer = strides_in(each.layout, shape)
        if inner not in (0, 1):
            return 1
        if inner and any(stride % items for stride in outer):
            return 1
        if inner and (each.address or 0) % (items * each.itemsize):
            return 1
    return items if words * items <= MAX_WORDS else 1


def peak_words(run: Run, needed: list[int]) -> int:
    """Return the most words of an element's values at a time; what is loaded is from the first."""
    last = {i: i for i in needed}
    for i in needed:
        for used in run.values[i].inputs:
            last[used] = i
    loaded = [
        i
        for i in needed
        if run.values[i].operation is None and run.values[i].access.address is not None
    ]
    live = peak = sum(run.values[i].words for i in loaded)
    ending: dict[int, int] = {}
    for i, end in last.items():
        if i in loaded or run.values[i].operation is not None:
            ending[end] = ending.get(end, 0) + run.values[i].words
    for i in needed:
        if run.values[i].operation is not None:
            live += run.values[i].words
        peak = max(peak, live)
        live -= ending.get(i, 0)
    return peak


class _Writer:
    """The text of a part, and its fields."""

    def __init__(
        self,
        run: Run,
        needed: list[int],
        outputs: set[int],
        memory: list[Value],
        shape: tuple[int, ...],
        items: int,
    ) -> None:
        self.run, self.shape, self.items = run, shape, items
        self.names = {value: f"v{i}" for i, value in enumerate(needed)}
        self.part = _Part(threads=run.size // items)
        self.operations: dict[tuple[str, ...], str] = {}
        self.offsets: dict[tuple[int, ...], str] = {}
        setup = self._locate([value.access for value in memory])
        loads, steps = [], []
        for i in needed:
            value = run.values[i]
            if value.operation is None:
                loads.append(self._load(i, value))
            else:
                steps.append(self._step(i, value))
            if i in outputs:
                steps.append(self._store(i, value))
        structs = [text.format(name=name) for (text, *_), name in self.operations.items()]
        self.part.fields.append(_Field("uint32", "threads", 4, pack("<I", self.part.threads)))
        # The largest come first, so that none needs to be padded.
        self.part.fields.sort(key=lambda each: -(each.size & -each.size))
        members = [f"    {each.cpp} {each.name};" for each in self.part.fields]
        self.part.text = "\n".join(
            [
                *structs,
                "struct alignas(16) Part {",
                *members,
                "};",
                "template <class Args> __device__ inline void run(const Args& args, "
                "const Part& part, uint32 block) {",
                "    uint32 thread = block * blockDim.x + threadIdx.x;",
                *setup,
                "    wait_for_dependencies(args);",
                "    launch_dependents();",
                "    if (thread >= part.threads) return;",
                *loads,
                *steps,
                "}",
            ]
        )

    def _field(self, cpp: str, name: str, size: int, content: bytes, **more: object) -> str:
        self.part.fields.append(_Field(cpp, name, size, content, **more))  # type: ignore[arg-type]
        return f"part.{name}"

    def _locate(self, accesses: list[Access]) -> list[str]:
        """Return the lines that compute the offsets, in elements, of the thread's first ones."""
        if len(self.shape) < 2:
            lines = [f"    int64 i0 = int64(thread) * {self.items};"]
        else:
            lines = ["    uint32 rest = thread, next;"]
            for d, size in enumerate(self.shape[:-1]):
                divider = _divider(size // self.items if d == 0 else size)
                name = self._field("Divider", f"d{d}", 12, pack("<III", *divider))
                lines.append(f"    next = divide(rest, {name});")
                scale = f" * {self.items}" if d == 0 and self.items > 1 else ""
                lines.append(f"    int64 i{d} = int64(rest - next * {name}.size){scale};")
                lines.append("    rest = next;")
            lines.append(f"    int64 i{len(self.shape) - 1} = rest;")
        for access in accesses:
            strides = strides_in(access.layout, self.shape)
            if strides in self.offsets:
                continue
            number = len(self.offsets)
            terms = []
            for d, stride in enumerate(strides):
                if d == 0 and stride == 1:
                    terms.append("i0")
                elif stride:
                    name = self._field("int64", f"s{number}_{d}", 8, pack("<q", stride))
                    terms.append(f"i{d} * {name}")
            if not terms:
                self.offsets[strides] = "0"
                continue
            self.offsets[strides] = f"o{number}"
            lines.append(f"    int64 o{number} = {' + '.join(terms)};")
            lines.append(f"    compute_now(o{number});")
        return lines

    def _address(self, i: int, access: Access, node: int) -> tuple[str, str]:
        strides = strides_in(access.layout, self.shape)
        mask = self.items * access.itemsize - 1 if strides and strides[0] == 1 else 0
        name = self._field(
            "void*",
            f"p{self.names[i][1:]}",
            8,
            pack("<Q", access.address),
            copy=(node, access.word),
            mask=mask,
        )
        return name, self.offsets[strides]

    def _load(self, i: int, value: Value) -> str:
        access, cpp = value.access, dtype(value.dtype).cpp
        target = f"    Items<{cpp}, {self.items}> {self.names[i]} = "
        if access.address is None:
            name = self._field(
                cpp,
                f"n{self.names[i][1:]}",
                access.itemsize,
                access.number,
                copy=(value.node, access.word),
            )
            return f"{target}splat<{self.items}>({name});"
        pointer, offset = self._address(i, access, value.node)
        strides = strides_in(access.layout, self.shape)
        how = "load_from" if strides and strides[0] == 1 else "load_one"
        return f"{target}{how}<{cpp}, {self.items}>({pointer}, {offset});"

    def _store(self, i: int, value: Value) -> str:
        pointer, offset = self._address(i, value.access, value.node)
        return f"    store_to({pointer}, {offset}, {self.names[i]});"

    def _step(self, i: int, value: Value) -> str:
        assert value.operation is not None
        row = value.operation.row
        arguments = []
        for used, wanted in zip(value.inputs, row.inputs, strict=True):
            text = self.names[used]
            if self.run.values[used].dtype != wanted:
                text = f"bits_as<{dtype(wanted).cpp}>({text})"
            arguments.append(text)
        target = f"    Items<{dtype(value.dtype).cpp}, {self.items}> {self.names[i]} = "
        if row.op == "copy":
            return f"{target}{arguments[0]};"
        operation = self._operation(row)
        return f"{target}operate<{operation}, {dtype(value.dtype).cpp}>({', '.join(arguments)});"

    def _operation(self, row: Row) -> str:
        """Return the name of the struct that applies a row's expression."""
        types = [dtype(each) for each in row.inputs]
        parameters = ", ".join(f"{t.compute} {x}" for t, x in zip(types, "abc", strict=False))
        text = (
            "struct {name} {{\n"
            f"    using T = {types[-1].cpp};\n"
            f"    __device__ static auto apply({parameters}) {{{{ return {row.expression}; }}}}\n"
            "}};"
        )
        name = f"{row.op}_{row.dtype}"
        self.operations.setdefault((text, name), name)
        return name


def _divider(size: int) -> tuple[int, int, int]:
    """Return what a kernel divides by a size with (see builtin/space)."""
    shift = (size - 1).bit_length()
    return size, (((1 << shift) - size) << 32) // size + 1 & 0xFFFFFFFF, shift


# -- the kernel ------------------------------------------------------------------------------------


def _assemble(
    parts: list[_Part], runs: Sequence[Run], stored: Sequence[Collection[int]], limit: int
) -> Fused | None:
    nbytes = -(-sum(each.size for each in parts[0].fields) // 16) * 16
    total = nbytes * len(parts) + (-(-4 * len(parts) // 16) * 16 if len(parts) > 1 else 0)
    if total > limit:
        return None
    block = _block(max(part.threads for part in parts), max(run.size for run in runs))
    params, copies, aligned = bytearray(total), [], []
    ends, end = [], 0
    for number, part in enumerate(parts):
        at = number * nbytes
        for each in part.fields:
            params[at : at + each.size] = each.content
            if each.copy is not None:
                copies.append(Copy(each.copy[0], each.copy[1], each.size, at))
            if each.mask:
                aligned.append((at, each.mask))
            at += each.size
        end += -(-part.threads // block)
        ends.append(end)
    if end > MAX_NUMERATOR:
        return None
    if len(parts) > 1:
        pack_into(f"<{len(ends)}I", params, nbytes * len(parts), *ends)
    text = _kernel(parts[0].text, len(parts))
    name = _name(runs[0], text)
    return Fused(
        source=text.replace("KERNEL", name),
        name=name,
        params=bytes(params),
        copies=tuple(copies),
        aligned=tuple(aligned),
        grid=(end, 1, 1),
        block=(block, 1, 1),
        nodes=tuple(node for run in runs for node in run.nodes),
        saved=sum(_saved(run, each) for run, each in zip(runs, stored, strict=True)),
    )


def _block(threads: int, size: int) -> int:
    most = SMALL_BLOCK if size <= SMALL else BLOCK
    return max(WARP, min(most, 1 << (threads - 1).bit_length()))


def _kernel(text: str, count: int) -> str:
    """Return the source; it has a namespace of its own, so that a module may have several."""
    if count > 1:
        ends = f"    uint32 ends[{count}];\n"
        part = (
            "    int number = part_of(blockIdx.x, args.ends);\n"
            "    uint32 begin = number ? args.ends[number - 1] : 0;\n"
            "    run(args, args.parts[number], blockIdx.x - begin);\n"
        )
    else:
        ends, part = "", "    run(args, args.parts[0], blockIdx.x);\n"
    return (
        '#include "fusion.cuh"\n'
        "namespace cyrt::KERNEL {\n"
        f"{text}\n"
        "struct alignas(16) Args {\n"
        f"    Part parts[{count}];\n"
        f"{ends}"
        "};\n"
        f"__device__ inline void launch(const Args& args) {{\n{part}}}\n"
        "}\n"
        f'extern "C" __global__ void __launch_bounds__({BLOCK}) KERNEL(\n'
        "    const __grid_constant__ cyrt::KERNEL::Args args) {\n"
        "    cyrt::KERNEL::launch(args);\n"
        "}\n"
    )


def _name(run: Run, text: str) -> str:
    """Return a name that tells the operations, and is another one for another text."""
    ops = [operation.row.op for operation in run.operations]
    told = "_".join(dict.fromkeys(ops[:3]))
    return f"cyrt_fused_{len(ops)}_{told}_{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _saved(run: Run, stored: Collection[int]) -> int:
    """Return the bytes that the operations read and write one by one, and the kernel does not."""

    def nbytes(access: Access) -> int:
        if access.address is None:
            return 0
        return access.itemsize * math.prod(size for size, stride in access.layout if stride)

    plain = sum(nbytes(access) for each in run.operations for access in each.operands)
    outputs = set(run.stored_values(stored))
    fused = sum(
        nbytes(run.values[i].access)
        for i in run.needed(stored)
        if run.values[i].operation is None or i in outputs
    )
    return plain - fused
