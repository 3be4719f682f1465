"""Where a built-in kernel's code comes from, and what is done where it cannot be used."""

from __future__ import annotations

import ctypes
import itertools
import lzma
import operator
import re
import sys
import threading
from types import SimpleNamespace

import pytest

import cyrt
from cyrt import jit
from cyrt.builtin import catalogue, loading
from cyrt.driver.errors import CompileError

EPOCHS = itertools.count(1_000_000)  # no context has these: nothing is found loaded
NEGATIVE = catalogue.row("negative", "float32")
EXP = catalogue.row("exp", "float32")


@pytest.fixture
def load():
    return lambda row: loading.load(row, 0, next(EPOCHS))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "PREBUILT", tmp_path)
    (tmp_path / "compute_90").mkdir()
    return tmp_path / "compute_90"


def ptx(*rows):
    options = (f"-I{loading.TEMPLATES}", f"-I{loading.TEMPLATES / 'include'}")
    return jit.compiler.compile(catalogue.source(rows), arch="compute_75", options=options).code


@pytest.mark.parametrize(
    ("capability", "emulated", "wanted"),
    [
        ((8, 9), False, ["sm_89", "sm_88", "sm_87", "sm_86"]),
        ((9, 0), False, ["sm_90", "compute_90"]),
        ((10, 3), False, ["sm_103", "sm_102", "sm_101", "sm_100", "compute_90"]),
        ((7, 5), False, ["sm_75", "sm_74", "sm_73", "sm_72", "sm_71", "sm_70"]),
        ((9, 0), True, ["compute_90"]),
    ],
)
def test_what_is_tried_first(capability, emulated, wanted):
    device = SimpleNamespace(compute_capability=capability, emulated=emulated)
    found = [path.parent.name for path, _ in loading._images("unary_float32", device)]
    assert found[: len(wanted)] == wanted
    assert ("compute_90" in found) == (capability >= (9, 0))


@pytest.fixture
def kernels_package(tmp_path, monkeypatch):
    """A package ``cyrt_kernels`` of a version, beside a cyrt without kernels of its own."""

    def make(version):
        package = tmp_path / "cyrt_kernels"
        package.mkdir()
        (package / "__init__.py").write_text(f"__version__ = {version!r}\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(loading, "_PACKAGE", tmp_path / "cyrt")
        return package

    yield make
    sys.modules.pop("cyrt_kernels", None)


def test_kernels_of_another_package(kernels_package):
    package = kernels_package(cyrt.__version__)
    assert loading.prebuilt_folder() == package / "prebuilt"
    own = loading._PACKAGE / "builtin" / "prebuilt"
    own.mkdir(parents=True)
    assert loading.prebuilt_folder() == own


def test_kernels_are_compressed_in_the_other_package(folder, load, monkeypatch, only_emulated):
    (folder / "unary_float32.ptx.xz").write_bytes(lzma.compress(ptx(NEGATIVE, EXP)))
    monkeypatch.setattr(loading, "compile_rows", None)
    functions, origin = load(NEGATIVE)
    assert origin == "prebuilt PTX compute_90"
    assert functions


def test_kernels_of_another_version_are_not_used(kernels_package):
    kernels_package("0.0.1")
    message = f"cyrt-kernels 0.0.1 is not used.* pip install cyrt-kernels=={cyrt.__version__}"
    with pytest.warns(RuntimeWarning, match=message):
        assert loading.prebuilt_folder() == loading._PACKAGE / "builtin" / "prebuilt"


def test_without_any_kernels(monkeypatch, tmp_path):
    monkeypatch.setattr(loading, "_PACKAGE", tmp_path)
    assert loading.prebuilt_folder() == tmp_path / "builtin" / "prebuilt"


def test_prebuilt_before_the_compiler(folder, load, monkeypatch, only_emulated):
    (folder / "unary_float32.ptx").write_bytes(ptx(NEGATIVE, EXP))
    monkeypatch.setattr(loading, "compile_rows", None)
    functions, origin = load(EXP)
    assert origin == "prebuilt PTX compute_90"
    assert [f.name for f in functions] == list(EXP.kernels)


@pytest.mark.parametrize("damaged", [None, b"", b".version 8.8\n.target sm_90\n", b"\x7fELF" * 9])
def test_what_cannot_be_used_is_compiled(folder, load, damaged):
    if damaged is not None:
        (folder / "unary_float32.ptx").write_bytes(damaged)
    assert load(EXP)[1].startswith("JIT ")


def test_a_module_without_the_kernel(folder, load):
    (folder / "unary_float32.ptx").write_bytes(ptx(NEGATIVE))
    assert load(EXP)[1].startswith("JIT ")


def test_neither_code_nor_compiler(folder, load, monkeypatch, only_emulated):
    def missing(rows, device):
        raise CompileError("nvrtcVersion", -1, "NVRTC_NOT_FOUND", "no NVRTC", "pip install cyrt")

    (folder / "unary_float32.ptx").write_bytes(b".version 99.9\n.target sm_90\n")
    monkeypatch.setattr(loading, "compile_rows", missing)
    with pytest.raises(CompileError, match="pip install cyrt") as caught:
        load(EXP)
    assert "prebuilt PTX compute_90: " in caught.value.__notes__[0]


@pytest.fixture
def prebuilt():
    if not (loading.PREBUILT / "manifest.json").exists():
        pytest.skip("the package was built with -Dprebuilt=off")
    return loading.PREBUILT


def test_prebuilt_operations_need_no_compiler(prebuilt, python):
    done = python(
        """
        import sys
        sys.modules["cuda.bindings"] = sys.modules["cuda.pathfinder"] = None
        import numpy as np
        import cyrt
        out = cyrt.arange(1, 21, 2, dtype="float32")
        cyrt.add(out, out, out=out)
        found = out.numpy()
        assert (found == 2 * (1 + 2 * np.arange(10))).all()
        print(cyrt.explain(cyrt.add, cyrt.Example(10), 1).origin)
        try:
            cyrt.ones(10, dtype="uint32") + 1
        except cyrt.CompileError as error:
            print(error)
    """,
        CYRT_CACHE="0",
    )
    assert done.returncode == 0, done.stderr
    assert "prebuilt" in done.stdout
    assert "pip install 'cyrt[cu13]'" in done.stdout


def test_after_a_reset(python):
    done = python(
        """
        import numpy as np
        import cyrt
        for _ in range(2):
            out = cyrt.full(10, 3.0, dtype="float32")
            assert (out.numpy() == 3).all()
            del out
            cyrt.Device().reset()
    """,
        CYRT_DEVICE="emulated",
    )
    assert done.returncode == 0, done.stderr


MOST_TURNS = 4  # the most turns before the wait; `early` may make them fewer

# The structs of parameters that have a word `early`, or that others begin with: by the template,
# and by what the names of the kernels contain.
EARLY = {
    "matmul": {"_rows": "Dot", "_columns": "Dot", "_skinny": "Skinny"},
    "linear": {"": "Skinny"},
}


@pytest.fixture(scope="module")
def early_words():
    """The offset of the word `early` in each of those structs."""
    structs = sorted({name for ends in EARLY.values() for name in ends.values()})
    stores = "".join(
        f"{{ cyrt::{name} x; out[{i}] = (char*)&x.early - (char*)&x; }}"
        for i, name in enumerate(structs)
    )
    device = cyrt.Device()
    image = jit.compiler.compile(
        f'#include "params/matmul.h"\nextern "C" __global__ void words(int* out) {{ {stores} }}',
        options=[f"-I{loading.TEMPLATES}", f"-I{loading.TEMPLATES / 'include'}"],
        arch=jit.compiler.architecture(device.compute_capability, device.emulated),
    )
    out = cyrt.zeros(len(structs), dtype=cyrt.int32)
    cyrt.Kernel(image.code, "words", signature="void words(int*)")[1, 1](out)
    return dict(zip(structs, out.numpy().tolist(), strict=True))


def statements_of(body):
    body = re.sub(r"\{([^{}\n]*)\}, \[", r"(\1), [", body)  # the registers of a vector
    body = re.sub(r"call\.uni\s+(?:\(\w+\),)?\s*(\w+),\s*\([^)]*\)\s*;", r"call \1;", body)
    return [each.strip() for each in re.split(r"[;{}\n]", body) if each.strip()]


def predicates_of(statements, offset, value):
    """What the predicates are that compare a 32-bit parameter with 0, for its value."""
    places, registers, predicates = {}, set(), {}  # places: offsets that registers point at
    for each in statements:
        if point := re.match(r"mov\.[bu]64\s+(%rd\d+), \w+_param_0$", each):
            places[point[1]] = 0
        elif point := re.match(r"add\.s64\s+(%rd\d+), (%rd\d+), (\d+)$", each):
            if point[2] in places:
                places[point[1]] = places[point[2]] + int(point[3])
        elif load := re.match(
            r"ld\.param(?:\.v\d)?\.u32\s+\(?([^()\[]*?)\)?, \[([^+]*)\+?([-\d]*)\]", each
        ):
            first = places.get(load[2], 0) + int(load[3] or 0)
            found = enumerate(load[1].split(", "))
            registers |= {name for i, name in found if first + 4 * i == offset}
        compare = re.match(r"setp\.(eq|ne)\.s32\s+(%p\d+), (%r\d+), 0", each)
        if compare and compare[3] in registers:
            predicates[compare[2]] = (compare[1] == "eq") == (value == 0)
    return predicates


COMPARISONS = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def counters_of(statements):
    """The registers that count the turns of loops, up to a small number."""
    added = (re.match(r"add\.[su]32\s+(%r\d+), \1, \d+$", each) for each in statements)
    compared = (
        re.match(r"setp\.\w+\.[su]32\s+%p\d+, (%r\d+), (\d+)$", each) for each in statements
    )
    small = {each[1] for each in compared if each and int(each[2]) <= MOST_TURNS}
    return small & {each[1] for each in added if each}


def assign(statement, values, counters):
    """The known values of counters and of predicates behind a statement."""
    parts = re.match(r"(mov|add|selp|setp)\.([\w.]+)\s+(%\w+), (.*)", statement)
    target = parts[3] if parts else None
    if target not in counters and (not parts or parts[1] != "setp"):
        return values
    inputs = [int(each) if each.isdecimal() else values.get(each) for each in parts[4].split(", ")]
    found = None
    if parts[1] == "selp":
        found = None if inputs[2] is None else inputs[0] if inputs[2] else inputs[1]
    elif None not in inputs:
        compare = COMPARISONS.get(parts[2].partition(".")[0])
        found = compare(*inputs) if compare else sum(inputs) if parts[1] != "setp" else None
    values = {name: value for name, value in values.items() if name != target}
    if found is not None and found <= MOST_TURNS:
        values[target] = found
    return values


def before_wait(statements, known):
    """Statements of PTX that may run before griddepcontrol.wait, by whatever way. Predicates that
    are `known` decide branches, and so do the turns of loops if there are any such."""
    labels = {each[:-1]: i for i, each in enumerate(statements) if each.endswith(":")}
    counters = counters_of(statements) if known else set()
    ways, seen, found = [(0, known)], set(), False
    while ways:
        at, values = ways.pop()
        if (state := (at, frozenset(values.items()))) in seen:
            continue
        seen.add(state)
        statement = statements[at]
        if "griddepcontrol.wait" in statement:
            found = True
            if statement.startswith("@"):  # where it does not hold, the next one does
                assert statements[at + 1] == statement.replace("@", "@!"), statement
            continue
        yield statement
        if statement == "ret":
            continue
        jump = re.match(r"(?:@(!?)(%\w+)\s+)?bra(?:\.uni)?\s+(\S+)", statement)
        taken = values.get(jump[2]) if jump else None
        if taken is not None:
            taken = taken != bool(jump[1])
        if known and not jump:
            values = {**assign(statement, values, counters), **known}
        if jump and taken is not False:
            ways.append((labels[jump[3]], values))
        if not jump or (jump[2] and not taken):
            ways.append((at + 1, values))
    assert found


ACCESS = (
    r"\b(ret|exit|call(?! (?:{calls})\b)|({load}|st|atom|red)(?!\.param|\.shared|\.local)[.\w]*)\b"
)


def functions_without_memory(text):
    """The functions of a file that touch no memory, nor call others that do."""
    bodies = dict(re.findall(r"^\.func [^\n]*?(\w+)\([^{;]*\{(.*?)^\}", text, re.M | re.S))
    found = []
    while True:
        access = re.compile(ACCESS.format(calls="|".join([*found, "-"]), load="ld"))
        more = [
            name
            for name, body in bodies.items()
            if name not in found
            and not any(access.search(each) for each in statements_of(body) if each != "ret")
        ]
        if not more:
            return [*found, "-"]
        found += more


def test_every_thread_waits_first(prebuilt, early_words):
    """Before any access to global memory and any return; and nothing may be loaded earlier, besides
    weights where a parameter says so."""
    early = 0
    for path in (prebuilt / "compute_90").glob("*.ptx"):
        text = path.read_text()
        entries = text.split(".entry ")[1:]
        assert entries, path
        calls = "|".join(functions_without_memory(text))
        access = re.compile(ACCESS.format(calls=calls, load="ld"))
        other = re.compile(ACCESS.format(calls=calls, load=r"ld(?!\.global)"))
        for entry in entries:
            name, _, rest = entry.partition("(")
            body = rest.partition("{")[2]
            statements = statements_of(body)
            ends = EARLY.get(path.stem.partition("_")[0], {})
            struct = next((ends[each] for each in ends if f"{path.stem}{each}" in name), None)
            known = predicates_of(statements, early_words[struct], 0) if struct else {}
            for statement in before_wait(statements, known):
                assert not access.search(statement), (
                    f"{name} runs {statement!r} before griddepcontrol.wait: the kernel begins with "
                    "wait_for_dependencies(args), see kernels_cu/include/dependency.cuh"
                )
            if struct:
                known = predicates_of(statements, early_words[struct], 1)
                before = list(before_wait(statements, known))
                assert not list(filter(other.search, before)), name
                early += any("ld.global" in each for each in before)
            # Only tables of CUDA's own functions are read through the read-only cache.
            assert "ld.global.nc" not in body or "__cudart" in body, name
    assert early > 0
    for source in loading.TEMPLATES.rglob("*.cu*"):
        assert not re.search(r"__ldg\(|[^_ ]__restrict__", source.read_text()), source


def test_what_threads_load_at_once_is_published_once(python):
    """The second thread's functions would take the place of those that the table points at."""
    done = python("""
        import ctypes, threading
        import cyrt
        from cyrt.builtin import entry
        from cyrt.driver import table

        x = cyrt.ones(4)
        x.numpy()
        before, published = set(entry._loaded), []
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t,
                                     ctypes.c_void_p, ctypes.c_void_p)

        @prototype
        def describe(*arguments):
            if not published:
                published.append(None)
                thread = threading.Thread(target=lambda: x + x)
                thread.start()
                thread.join()
                key, = set(entry._loaded) - before
                published[:] = [key, entry._loaded[key][0]]
            return original(*arguments)

        original = prototype(table.replace(
            "cuFuncGetParamInfo", ctypes.cast(describe, ctypes.c_void_p).value))
        assert (x + x).numpy().tolist() == [2] * 4
        key, functions = published
        assert entry._loaded[key][0] is functions
    """)
    assert done.returncode == 0, done.stderr


def test_threads_load_the_code_of_a_row_once(replaced):
    """The second thread waits for the first one's load."""
    row, epoch, found, counts = EXP, next(EPOCHS), [], []

    def use():
        found.append(loading.load(row, 0, epoch)[0])

    def loaded(original, *arguments):
        counts.append(None)
        if len(counts) == 1:
            threads.append(threading.Thread(target=use))
            threads[0].start()
            threads[0].join(0.5)
        return original(*arguments)

    threads = []
    replaced(
        "cuModuleLoadDataEx",
        [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p],
        loaded,
    )
    use()
    threads[0].join()
    assert len(counts) == 1
    assert found[0][0].module is found[1][0].module


def test_code_of_an_older_context_is_forgotten_by_two_at_once():
    """Each finds the other's work done."""

    class Modules(dict):
        def __iter__(self):
            keys = list(super().__iter__())
            self.clear()  # by another thread
            return iter(keys)

    modules = Modules({(0, -1, "none"): None})
    before, loading._modules = loading._modules, modules
    try:
        loading.load(NEGATIVE, 0, next(EPOCHS))
    finally:
        loading._modules = before
