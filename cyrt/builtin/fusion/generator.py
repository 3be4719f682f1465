"""The source of a fused kernel, its parameters and its geometry, from runs of operations.

INVARIANTS
- Equal runs give equal text: addresses, sizes, strides and numbers are parameters. Compiled in are
  the operations, their types, the values that they share, the values that are stored, the
  dimensions along which an operand's stride is 0, and whether it is 1 along the innermost one.
- A value in registers has its element type, rounded as if it had been stored and loaded.
- Every parameter that a node's own parameters hold is copied from there, byte for byte.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from struct import pack, pack_into

from cyrt.builtin.fusion.description import VECTOR_BYTES, Access, FusedProduct
from cyrt.builtin.fusion.run import MAX_WORDS, Run, Value, cuts_of, peak_words, shape_of, strides_in
from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

#: Elements up to which a thread has one: all threads run at once, on all multiprocessors, and the
#: fewer instructions a thread executes the sooner it ends.
SMALL = 1 << 17
#: Threads of a block, for arrays up to SMALL elements and for others; the least.
SMALL_BLOCK, BLOCK, WARP = 128, 256, 32
#: What a kernel divides, at most (params/space.h).
MAX_NUMERATOR = 0x7FFFFFFF
#: The most bytes of parameters, for every driver, and from CUDA 12.1 and compute capability 7.0 on.
LIMIT, LARGE_LIMIT = 4096, 32764


@dataclass(frozen=True, slots=True)
class Copy:
    """Bytes of a node's parameters that the fused kernel's have too.

    Attributes
    ----------
    node, source : int
        The node, and where its parameters have them.
    size : int
    target : int
        Where the fused kernel's have them.
    address : int or None
        The address that they are; None: a number.
    """

    node: int
    source: int
    size: int
    target: int
    address: int | None = None


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
    smem : int
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
    smem: int
    nodes: tuple[int, ...]
    saved: int


@dataclass(frozen=True, slots=True)
class _Field:
    """A member of the struct of a part's parameters."""

    cpp: str
    name: str
    content: bytes
    copies: tuple[Copy, ...] = ()  # what nodes have of it, from its first byte
    mask: int = 0  # the bits of an address that must be 0

    @property
    def size(self) -> int:
        return len(self.content)


@dataclass(slots=True)
class _Part:
    """A run's part of a launch: its text, which equal runs share, and its parameters."""

    text: str = ""
    fields: list[_Field] = field(default_factory=list)
    threads: int = 0
    rows: int = 0
    block: tuple[int, int] | None = None  # the block of a reduction
    product: FusedProduct | None = None


def generate(
    runs: Sequence[Run], stored: Sequence[Collection[int]], limit: int = LIMIT
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
    if part is None:
        return None
    if part.product is None:
        return part.text
    return f"{part.text}{part.product.block}{part.product.smem}"


# -- a part ----------------------------------------------------------------------------------------


def _part(run: Run, stored: Collection[int]) -> _Part | None:
    needed, outputs = run.needed(stored), set(run.stored_values(stored))
    values = run.values
    memory = [
        values[i]
        for i in needed
        if values[i].access.address is not None and (values[i].operation is None or i in outputs)
    ]
    reductions = [i for i in needed if run.values[i].along_rows]
    if reductions:
        return _rows_part(run, needed, outputs, memory)
    shape = shape_of({run.size}.union(*(cuts_of(value.access.layout) for value in memory)))
    operations = [values[i].operation for i in needed]
    has_product = any(each is not None and each.product is not None for each in operations)
    items = 1 if has_product else _items(run, needed, memory, shape)
    if run.size // items > MAX_NUMERATOR:
        return None
    writer = _ProductWriter if has_product else _Writer
    return writer(run, needed, outputs, memory, shape, items).part


def _rows_part(run: Run, needed: list[int], outputs: set[int], memory: list[Value]) -> _Part | None:
    """Return the part of a run with reductions, which divides rows as their own kernels do."""
    assert run.reduction is not None
    length = run.reduction.length
    if run.rows > MAX_NUMERATOR:
        return None
    cuts = {length, run.size}
    for value in memory:
        inner = 1 if not value.along_rows else length
        cuts |= {inner * size for size in cuts_of(value.access.layout)}
    shape = shape_of(cuts)
    return _RowsWriter(run, needed, outputs, memory, shape, run.reduction.items).part


def _items(run: Run, needed: list[int], memory: list[Value], shape: tuple[int, ...]) -> int:
    """Return how many elements a thread has: those of a vector, or one."""
    words = peak_words(run.values, needed)
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


class _Writer:
    """The text of a part, and its fields."""

    count = "threads"  # the field of a number below 2^31

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
        self.part = _Part()
        self.structs: dict[str, str] = {}
        self.offsets: dict[tuple[bool, tuple[int, ...]], str] = {}
        setup = [*self._begin(), *self._locate(memory)]
        loads: list[str] = []
        steps: list[str] = []
        last: list[str] = []
        for i in needed:
            value = run.values[i]
            if value.operation is None:
                loads.append(self._load(i, value))
            else:
                steps.append(self._step(i, value))
            if i in outputs:
                (last if value.along_rows else steps).append(self._store(i, value))
        if last:  # the row's other threads have read what a row has one of
            last.insert(0, "__syncthreads();")
        if any("settled(" in each for each in steps):
            setup.append(f"uint32 zero = part.{self.count} >> 31;")
        # The largest come first, so that none needs to be padded.
        self.part.fields.sort(key=lambda each: -(each.size & -each.size))
        members = [f"{each.cpp} {each.name};" for each in self.part.fields]
        self.part.text = "\n".join(
            [
                *self.structs.values(),
                "struct alignas(16) Part {",
                *(f"    {each}" for each in members),
                "};",
                *self._functions(setup, [*loads, *steps, *last]),
            ]
        )

    def _functions(self, setup: list[str], work: list[str]) -> list[str]:
        """Return the lines of the functions of a part."""
        lines = [*setup, "wait_for_dependencies(args);", "launch_dependents();", *self._end()]
        return [
            "template <class Args>",
            "__device__ inline void run(const Args& args, const Part& part, uint32 block) {",
            *(f"    {each}" for each in (*lines, *work)),
            "}",
        ]

    def _field(
        self, cpp: str, name: str, content: bytes, copies: tuple[Copy, ...] = (), mask: int = 0
    ) -> str:
        self.part.fields.append(_Field(cpp, name, content, copies, mask))
        return f"part.{name}"

    # The elements of a thread, the first of them, and the threads that have none.

    def _begin(self) -> list[str]:
        threads = self.part.threads = self.run.size // self.items
        self._field("uint32", "threads", pack("<I", threads))
        lines = ["uint32 thread = block * blockDim.x + threadIdx.x;"]
        if len(self.shape) < 2:
            return [*lines, f"int64 i0 = int64(thread) * {self.items};"]
        return [*lines, *self._indices("thread", 0)]

    def _end(self) -> list[str]:
        return ["if (thread >= part.threads) return;"]

    def _indices(self, number: str, first: int) -> list[str]:
        """Return the lines that compute the indices of a thread from dimension `first` on."""
        lines = [f"uint32 rest = {number};"]
        last = len(self.shape) - 1
        for d in range(first, last):
            items = self.items if d == 0 else 1
            divider = self._field(
                "Divider", f"d{d}", pack("<III", *_divider(self.shape[d] // items))
            )
            lines += [
                f"uint32 next{d} = divide(rest, {divider});",
                f"int64 i{d} = int64(rest - next{d} * {divider}.size)"
                f"{f' * {items}' * (items > 1)};",
                f"rest = next{d};",
            ]
        return [*lines, f"int64 i{last} = rest;"]

    def _steps(self, value: Value) -> tuple[int, ...]:
        """Return a value's strides along the dimensions."""
        return strides_in(value.access.layout, self.shape)

    def _locate(self, memory: list[Value]) -> list[str]:
        """Return the lines that compute the offsets, in elements, of the thread's first ones."""
        lines = []
        for value in memory:
            strides = self._steps(value)
            if (value.along_rows, strides) in self.offsets:
                continue
            number = len(self.offsets)
            terms = []
            for d, stride in enumerate(strides):
                if d == 0 and stride == 1 and not value.along_rows:
                    terms.append("i0")
                elif stride:
                    name = self._field("int64", f"s{number}_{d}", pack("<q", stride))
                    terms.append(f"i{d + (len(self.shape) - len(strides))} * {name}")
            self.offsets[value.along_rows, strides] = f"o{number}" if terms else "0"
            if terms:
                lines.append(f"int64 o{number} = {' + '.join(terms)};")
                lines.append(f"compute_now(o{number});")
        return lines

    def _is_vector(self, value: Value) -> bool:
        return not value.along_rows and self._steps(value)[:1] == (1,)

    def _address(self, i: int, value: Value) -> str:
        """Return the arguments that tell where a value is: its memory, and an offset."""
        access = value.access
        assert access.address is not None
        items = self.items if self._is_vector(value) else 1
        size = min(items * access.itemsize, VECTOR_BYTES)
        name = self._field(
            *("void*", f"p{self.names[i][1:]}", pack("<Q", access.address)),
            *((Copy(value.node, access.word, 8, 0, access.address),), size - 1),
        )
        return f"{name}, {self.offsets[value.along_rows, self._steps(value)]}"

    def _count(self, value: Value) -> int:
        """Return how many elements of a value a thread has."""
        return self.items

    def _declared(self, i: int, value: Value) -> str:
        return f"Items<{dtype(value.dtype).cpp}, {self._count(value)}> {self.names[i]} = "

    def _load(self, i: int, value: Value) -> str:
        access, cpp, count = value.access, dtype(value.dtype).cpp, self._count(value)
        if access.address is None:
            copy = Copy(value.node, access.word, len(access.number), 0)
            name = self._field(cpp, f"n{self.names[i][1:]}", access.number, (copy,))
            return f"{self._declared(i, value)}splat<{count}>({name});"
        if self._is_vector(value):
            return self._declared(i, value) + self._load_vector(cpp, self._address(i, value))
        return f"{self._declared(i, value)}load_one<{cpp}, {count}>({self._address(i, value)});"

    def _load_vector(self, cpp: str, address: str) -> str:
        return f"load_from<{cpp}, {self.items}>({address});"

    def _store(self, i: int, value: Value) -> str:
        return f"store_to({self._address(i, value)}, {self.names[i]});"

    def _argument(self, used: int, value: Value, wanted: str) -> str:
        """Return an operand of the operation that computes a value, as a type."""
        text = self.names[used]
        if self.run.values[used].dtype != wanted:
            text = f"bits_as<{dtype(wanted).cpp}>({text})"
        return text

    def _step(self, i: int, value: Value) -> str:
        assert value.operation is not None
        row = value.operation.row
        arguments = ", ".join(
            self._argument(used, value, wanted)
            for used, wanted in zip(value.inputs, row.inputs, strict=True)
        )
        if row.op == "copy":
            return f"{self._declared(i, value)}{arguments};"
        text = f"operate<{self._operation(row)}, {dtype(value.dtype).cpp}>({arguments})"
        if _changes_sign(row):
            text = f"settled({text}, zero)"
        return f"{self._declared(i, value)}{text};"

    def _operation(self, row: Row) -> str:
        """Return the name of the struct that applies a row's expression."""
        types = [dtype(each) for each in row.inputs]
        parameters = ", ".join(f"{t.compute} {x}" for t, x in zip(types, "abc", strict=False))
        name = f"{row.op}_{row.dtype}"
        self.structs[name] = (
            f"struct {name} {{\n"
            f"    using T = {types[-1].cpp};\n"
            f"    __device__ static auto apply({parameters}) {{ return {row.expression}; }}\n"
            "};"
        )
        return name


class _ProductWriter(_Writer):
    """The same for a run with a product: a thread applies the other operations to each result that
    it has computed."""

    def _begin(self) -> list[str]:
        assert self.run.product is not None
        self.part.product = self.run.product
        self.part.threads = self.run.size
        self._field("uint32", "threads", pack("<I", self.run.size))
        self._field("uint32", "blocks", pack("<I", self.run.product.grid[0]))
        if len(self.shape) < 2:
            return ["int64 i0 = offset;"]
        return self._indices("offset", 0)

    def _step(self, i: int, value: Value) -> str:
        assert value.operation is not None
        product = value.operation.product
        if product is None:
            return super()._step(i, value)
        copies = [Copy(value.node, word, 8, word, address) for address, word in product.addresses]
        if product.early is not None:
            copies.append(Copy(value.node, product.early, 4, product.early))
        self._field(product.code.struct, "product", product.params, tuple(copies))
        return f"{self._declared(i, value)}splat<1>(cast<{dtype(value.dtype).cpp}>(result));"

    def _functions(self, setup: list[str], work: list[str]) -> list[str]:
        assert self.run.product is not None
        return [
            "struct Results {",
            "    static constexpr bool VECTORS = false;",
            "    const Part& part;",
            "    template <class C>",
            "    __device__ void operator()(void*, int64 offset, C result) const {",
            *(f"        {each}" for each in (*setup, *work)),
            "    }",
            "};",
            "template <class Args>",
            "__device__ inline void run(const Args&, const Part& part, uint32 block) {",
            f"    cyrt::{self.run.product.code.function}(part.product, Results{{part}}, "
            "Blocks{block, part.blocks});",
            "}",
        ]


class _RowsWriter(_Writer):
    """The same of a run with reductions: a thread has a part of a row."""

    count = "rows"

    def _begin(self) -> list[str]:
        reduction = self.run.reduction
        assert reduction is not None
        self.part.rows, self.part.block = self.run.rows, reduction.block
        self.units = reduction.elements // self.items
        rows = self._field("uint32", "rows", pack("<I", self.run.rows))
        units = self._field("uint32", "units", pack("<I", reduction.length // self.items))
        lines = [
            "uint32 row = block * blockDim.y + threadIdx.y;",
            f"bool inside = row < {rows};",
            f"uint32 left = inside && threadIdx.x < {units} ? {units} - threadIdx.x : 0;",
            "int64 i0 = 0;",
        ]
        return lines + (self._indices("inside ? row : 0", 1) if len(self.shape) > 1 else [])

    def _end(self) -> list[str]:
        return []

    def _steps(self, value: Value) -> tuple[int, ...]:
        shape = self.shape[1:] if value.along_rows else self.shape
        return strides_in(value.access.layout, shape)

    def _count(self, value: Value) -> int:
        return 1 if value.along_rows else self.items * self.units

    def _load_vector(self, cpp: str, address: str) -> str:
        return f"load_row<{cpp}, {self.items}, {self.units}>({address}, left);"

    def _store(self, i: int, value: Value) -> str:
        if value.along_rows:
            return f"if (threadIdx.x == 0 && inside) {super()._store(i, value)}"
        if not self._is_vector(value):
            raise ValueError("a value of a row's elements is stored at each")
        address = self._address(i, value)
        return f"store_row<{self.items}, {self.units}>({address}, left, {self.names[i]});"

    def _argument(self, used: int, value: Value, wanted: str) -> str:
        text = super()._argument(used, value, wanted)
        reduced = value.operation is not None and value.operation.reduction is not None
        if self.run.values[used].along_rows and not value.along_rows and not reduced:
            text = f"along_row<{self._count(value)}>({text})"
        return text

    def _step(self, i: int, value: Value) -> str:
        assert value.operation is not None
        reduction, row = value.operation.reduction, value.operation.row
        if reduction is None:
            return super()._step(i, value)
        element, result = dtype(row.dtype).cpp, dtype(row.output).cpp
        name = f"{row.op}_{row.dtype}"
        self.structs[name] = (
            f"namespace {name}_of {{ using T = {element}; using R = {result}; "
            f"using Op = {row.expression}; }}\nusing {name} = {name}_of::Op;"
        )
        # It follows from the shape, as sizes do.
        divisor = self._field("double", f"f{self.names[i][1:]}", pack("<d", reduction.divisor))
        argument = self._argument(value.inputs[0], value, row.dtype)
        return (
            f"{self._declared(i, value)}reduce_row<{name}, {result}, {self.items}, {self.units}>"
            f"({argument}, left, {divisor});"
        )


def _changes_sign(row: Row) -> bool:
    """Return whether the last that an operation does may be a change of a sign."""
    output = dtype(row.output)
    if output.kind == "c":
        return row.op != "where"
    return output.kind == "f" and output.itemsize >= 4 and row.op in ("negative", "abs")


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
    product = parts[0].product
    x, y = parts[0].block or (_block(max(each.threads for each in parts), runs), 1)
    if any((part.block or (x, y)) != (x, y) for part in parts):
        return None
    params, copies, aligned = bytearray(total), [], []
    ends, end = [], 0
    for number, part in enumerate(parts):
        at = number * nbytes
        for each in part.fields:
            params[at : at + each.size] = each.content
            copies += [replace(copy, target=at + copy.target) for copy in each.copies]
            if each.mask:
                aligned.append((at, each.mask))
            at += each.size
        if part.product is not None:
            end += part.product.grid[0]
        else:
            end += -(-part.rows // y) if part.block else -(-part.threads // x)
        ends.append(end)
    if end > MAX_NUMERATOR:
        return None
    if len(parts) > 1:
        pack_into(f"<{len(ends)}I", params, nbytes * len(parts), *ends)
    bounds = f"({BLOCK if parts[0].block is None else x * y})"
    text = _kernel(parts[0], len(parts), bounds if product is None else product.code.bounds)
    name = _name(runs[0], text)
    return Fused(
        source=text.replace("KERNEL", name),
        name=name,
        params=bytes(params),
        copies=tuple(copies),
        aligned=tuple(aligned),
        grid=(end, 1, 1),
        block=(x, y, 1) if product is None else product.block,
        smem=0 if product is None else product.smem,
        nodes=tuple(node for run in runs for node in run.nodes),
        saved=sum(_saved(run, each) for run, each in zip(runs, stored, strict=True)),
    )


def _block(threads: int, runs: Sequence[Run]) -> int:
    most = SMALL_BLOCK if all(run.size <= SMALL for run in runs) else BLOCK
    return max(WARP, min(most, 1 << (threads - 1).bit_length()))


def _kernel(run: _Part, count: int, bounds: str) -> str:
    """Return the source of a kernel with these launch bounds. It has a namespace of its own, so
    that a module may have several kernels."""
    if count > 1:
        ends = f"    uint32 ends[{count}];\n"
        part = (
            "    int number = part_of(blockIdx.x, args.ends);\n"
            "    uint32 begin = number ? args.ends[number - 1] : 0;\n"
            "    run(args, args.parts[number], blockIdx.x - begin);\n"
        )
    else:
        ends, part = "", "    run(args, args.parts[0], blockIdx.x);\n"
    header = "fusion.cuh" if run.block is None else "fusion_rows.cuh"
    if run.product is not None:
        header = "fusion_products.cuh"
    return (
        f'#include "{header}"\n'
        "namespace cyrt::KERNEL {\n"
        f"{run.text}\n"
        "struct alignas(16) Args {\n"
        f"    Part parts[{count}];\n"
        f"{ends}"
        "};\n"
        f"__device__ inline void launch(const Args& args) {{\n{part}}}\n"
        "}\n"
        f'extern "C" __global__ void __launch_bounds__{bounds} KERNEL(\n'
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
