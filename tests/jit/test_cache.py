"""The disk cache: what is kept, what is not trusted, and its size."""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

import pytest
from cache_entries import cached_kernels, entries, forged
from kernel_sources import PTX, SAXPY

from cyrt.driver.errors import CompileError
from cyrt.jit import cache, compiler, job, nvrtc, toolchain
from cyrt.jit.cache import Cache, DamagedEntry
from cyrt.jit.compiler import compile

TEMPLATE = "template<class T> __global__ void axpy(T a, T* y) { *y += a; } __device__ int counter;"


# -- what is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", [PTX, "sm_90"])
def test_the_second_time_nothing_is_compiled(folder, runs, arch):
    names = ["axpy<float>", "&counter"]
    first = compile("#warning here\n" + TEMPLATE, names, arch=arch)
    assert len(runs) == 2  # the check of the syntax, since a template is named
    assert compile("#warning here\n" + TEMPLATE, names, arch=arch) == first
    assert len(runs) == 2
    assert "here" in first.log


def test_a_warm_process_loads_no_compiler(folder, python):
    program = f"""
    import sys
    import cyrt
    for source in ({SAXPY!r}, "#include <cuda_fp16.h>\\n#include <stdint.h>\\n" + {SAXPY!r}):
        kernel = cyrt.Module(source)["saxpy"]
        print(kernel.signature)
    loaded = [m for m in sys.modules if m.startswith("cuda.")]
    print("nvrtc" in open("/proc/self/maps").read(), loaded)
    """
    cold = python(program, CYRT_DEVICE="emulated")
    assert "True" in cold.stdout, cold.stderr
    warm = python(program, CYRT_DEVICE="emulated")
    signature = "void saxpy(float a, const float* x, float* y, int n)"
    assert warm.stdout.splitlines() == [signature, signature, "False []"], warm.stderr


def test_what_changes_the_code_changes_the_key(folder, runs, tmp_path):
    given = {"source": SAXPY, "names": ["saxpy"], "arch": PTX}
    compile(**given)
    others = [
        {"source": SAXPY.replace("a * x", "2 * x")},
        {"names": []},
        {"arch": "compute_80"},
        {"arch": "sm_90"},
        {"options": ["-use_fast_math"]},
        {"options": ["-DA", "-DB"]},
        {"options": ["-DB", "-DA"]},
        {"headers": {"a.h": ""}},
        {"headers": {"a.h": "//"}},
        {"define": {"A": 1}},
        {"define": {"A": 2}},
        {"filename": "other.cu"},
    ]
    for count, other in enumerate(others, 2):
        compile(**{**given, **other})
        assert len(runs) == count, other
        compile(**{**given, **other})
        assert len(runs) == count, other


def test_another_compiler_or_header_package_changes_the_key(folder):
    kernel = job.Job("#include <cuda_fp16.h>\n" + SAXPY, (), PTX, (), None, None, None)
    here = toolchain.library()
    path, size, changed = here.files[0]
    keys = {kernel.key(here)}
    for file in ((path + "x", size, changed), (path, size + 1, changed), (path, size, changed + 1)):
        keys.add(kernel.key(here._replace(files=(file, *here.files[1:]))))
    folders = toolchain.header_folders()
    try:
        toolchain._folders = (folders[0]._replace(packages=("other-1.0",)), *folders[1:])
        keys.add(kernel.key(here))
        toolchain._folders = (folders[0]._replace(changed=1), *folders[1:])
        keys.add(kernel.key(here))
    finally:
        toolchain._folders = folders
    assert len(keys) == 6


def test_line_tables_name_the_folder(folder, runs, tmp_path, monkeypatch):
    for folder_of_source in ("a", "b"):
        (tmp_path / folder_of_source).mkdir()
        monkeypatch.chdir(tmp_path / folder_of_source)
        image = compile(SAXPY, arch=PTX, options=["-lineinfo"])
        assert str(tmp_path / folder_of_source).encode() in image.code
        compile(SAXPY, arch=PTX)
    assert len(runs) == 3


def test_off_means_off(folder, setting, runs):
    setting(CYRT_CACHE="0")
    compile(SAXPY, arch=PTX)
    compile(SAXPY, arch=PTX)
    assert len(runs) == 2
    assert not folder.exists()


def test_what_is_kept_is_its_owners_alone(folder):
    compile(SAXPY, arch=PTX)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {f.stat().st_mode & 0o077 for f in (folder, *folder.rglob("*"))} == {0}


def test_a_failure_is_not_kept(folder, runs):
    for _ in range(2):
        runs.clear()
        with pytest.raises(CompileError):
            compile("int x = ;", arch=PTX)
        assert runs
    assert cached_kernels(folder) == []


def test_long_names(folder, runs):
    name = "k" * 5000
    source = SAXPY.replace("saxpy", name)
    assert compile(source, [name], arch=PTX) == compile(source, [name], arch=PTX)
    assert len(runs) == 1


def test_an_nvrtc_that_another_package_loaded_is_told_apart(folder, runs, monkeypatch):
    compile(SAXPY, arch=PTX)
    there = toolchain.library()
    monkeypatch.setattr(toolchain, "_library", there._replace(version=(12, 0)))
    compile(SAXPY, arch=PTX)
    assert toolchain.library() == there
    assert len(runs) == 1


def test_what_was_found_is_searched_again_where_it_changed(folder, monkeypatch):
    searched = []
    real = toolchain._loaded_library
    monkeypatch.setattr(toolchain, "_loaded_library", lambda: searched.append(1) or real())
    there = toolchain.library()
    for count in (1, 1):
        monkeypatch.setattr(toolchain, "_library", None)
        assert toolchain.library() == there
        assert len(searched) == count
    store = cache.current()
    facts, body = store.get(toolchain._memory_key())
    facts["library"]["files"][0][1] += 1
    store.put(toolchain._memory_key(), facts, body)
    monkeypatch.setattr(toolchain, "_library", None)
    assert toolchain.library() == there
    assert len(searched) == 2


def test_header_folders_are_searched_again_where_one_changed(folder, monkeypatch):
    monkeypatch.setattr(toolchain, "_folders", None)
    there = toolchain.header_folders()
    store = cache.current()
    facts, body = store.get(toolchain._memory_key())
    facts["folders"] = [{**facts["folders"][0], "packages": ["remembered"]}]
    store.put(toolchain._memory_key(), facts, body)
    monkeypatch.setattr(toolchain, "_folders", None)
    assert toolchain.header_folders() == (there[0]._replace(packages=("remembered",)),)
    facts["folders"][0]["changed"] += 1
    store.put(toolchain._memory_key(), facts, body)
    monkeypatch.setattr(toolchain, "_folders", None)
    assert toolchain.header_folders() == there


@pytest.mark.parametrize(
    "facts",
    [
        {}, {"library": None, "folders": None}, {"library": {}, "folders": [{}]},
        {"library": {"files": [[1]], "version": [], "archs": []}, "folders": 3},
    ],
)  # fmt: skip
def test_what_was_found_is_searched_again_where_it_is_not_readable(folder, monkeypatch, facts):
    monkeypatch.setattr(toolchain, "_folders", None)
    there = toolchain.library(), toolchain.header_folders()
    cache.current().put(toolchain._memory_key(), {"kind": "toolchain", **facts})
    for name in ("_library", "_folders"):
        monkeypatch.setattr(toolchain, name, None)
    assert (toolchain.library(), toolchain.header_folders()) == there


def test_what_was_compiled_while_the_compiler_was_exchanged_is_not_kept(
    folder, runs, tmp_path, monkeypatch
):
    (tmp_path / "installed").mkdir()
    changed = (tmp_path / "installed").stat().st_mtime_ns
    there = toolchain.Folder(str(tmp_path / "installed"), changed, ())
    monkeypatch.setattr(toolchain, "_folders", (*toolchain.header_folders(), there))
    run = nvrtc.run

    def exchanged(*arguments, **more):
        os.utime(tmp_path / "installed", (1, 1))
        return run(*arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(nvrtc, "run", exchanged)
        compile("#include <stdint.h>\n" + SAXPY, arch=PTX)
    assert cached_kernels(folder) == []


# -- entries that are not as they were written -----------------------------------------------------


@pytest.mark.parametrize("place", [0, 9, 20, 60, -1])
def test_a_flipped_bit_is_noticed(folder, runs, place):
    image = compile(SAXPY, arch=PTX)
    for path in entries(folder):
        data = bytearray(path.read_bytes())
        data[place] ^= 4
        path.write_bytes(data)
    assert compile(SAXPY, arch=PTX) == image
    assert len(runs) == 2
    assert compile(SAXPY, arch=PTX) == image
    assert len(runs) == 2


@pytest.mark.parametrize("length", [0, 7, 47, 100, -1])
def test_a_truncated_entry_is_compiled_anew(folder, runs, length):
    image = compile(SAXPY, arch=PTX)
    for path in entries(folder):
        path.write_bytes(path.read_bytes()[:length])
    assert compile(SAXPY, arch=PTX) == image
    assert len(runs) == 2


def test_an_entry_of_another_architecture_is_not_taken(folder, runs):
    compile(SAXPY, arch="sm_80")
    (other,) = cached_kernels(folder)
    image = compile(SAXPY, arch="sm_90")
    (own,) = [e for e in cached_kernels(folder) if e.key != other.key]
    with open(other.path, "rb") as source, open(own.path, "wb") as target:
        target.write(source.read())
    with pytest.raises(DamagedEntry, match="another entry's"):
        Cache(folder, 1 << 30).load(own)
    assert compile(SAXPY, arch="sm_90") == image
    assert len(runs) == 3


def test_an_unreadable_entry_is_made_anew(folder, runs):
    image = compile(SAXPY, arch=PTX)
    (entry,) = cached_kernels(folder)
    os.unlink(entry.path)
    os.symlink(entry.path, entry.path)
    assert compile(SAXPY, arch=PTX) == image
    assert compile(SAXPY, arch=PTX) == image
    assert len(runs) == 2


@pytest.mark.parametrize("kind", ["fifo", "endless", "link", "folder", "sparse", "forged sparse"])
def test_what_is_no_regular_file_of_its_size_is_made_anew(folder, runs, tmp_path, kind):
    image = compile(SAXPY, arch=PTX)
    (entry,) = cached_kernels(folder)
    data = Path(entry.path).read_bytes()
    os.unlink(entry.path)
    if kind == "fifo":
        os.mkfifo(entry.path)
    elif kind == "endless":
        os.symlink("/dev/zero", entry.path)
    elif kind == "link":
        (tmp_path / "elsewhere").write_bytes(data)
        os.symlink(tmp_path / "elsewhere", entry.path)
    elif kind == "folder":
        os.mkdir(entry.path)
    else:
        header = b"cyrt-jit" + struct.pack("<QQ", 10, (1 << 42) - 10 - cache._HEADER.size)
        Path(entry.path).write_bytes(header + bytes(32) if kind == "forged sparse" else data)
        os.truncate(entry.path, 1 << 42)
    with pytest.raises((DamagedEntry, OSError)):
        Cache(folder, 1 << 30).load(entry)
    assert compile(SAXPY, arch=PTX) == image
    assert len(runs) == 2
    assert compile(SAXPY, arch=PTX) == image
    assert len(runs) == 2
    assert Path(entry.path).read_bytes() == data
    assert not Path(entry.path).is_symlink()


def test_a_folder_with_files_in_an_entrys_place_stays(folder, runs):
    compile(SAXPY, arch=PTX)
    (entry,) = cached_kernels(folder)
    os.unlink(entry.path)
    os.mkdir(entry.path)
    Path(entry.path, "mine").write_text("mine")
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        compile(SAXPY, arch=PTX)
    assert Path(entry.path, "mine").read_text() == "mine"
    assert not list(folder.rglob("*.partial"))


@pytest.mark.parametrize("change", [lambda data: data + b"\0", lambda data: data[:-1]])
def test_an_entry_of_another_size_than_its_header_says(folder, change):
    compile(SAXPY, arch=PTX)
    (entry,) = cached_kernels(folder)
    path = Path(entry.path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DamagedEntry, match=r"altered or truncated: \d+ bytes, and \d+ were"):
        Cache(folder, 1 << 30).load(entry)


def test_an_entry_that_others_may_write_is_made_anew(folder, runs):
    compile(SAXPY, arch=PTX)
    (entry,) = cached_kernels(folder)
    os.chmod(entry.path, 0o666)
    with pytest.raises(DamagedEntry, match="others may write"):
        Cache(folder, 1 << 30).load(entry)
    compile(SAXPY, arch=PTX)
    compile(SAXPY, arch=PTX)
    assert len(runs) == 2
    assert os.stat(entry.path).st_mode & 0o777 == 0o600


def test_an_entry_of_another_user_is_made_anew(folder, runs, monkeypatch):
    compile(SAXPY, arch=PTX)
    (entry,) = cached_kernels(folder)
    real = os.fstat

    def of_another(handle):
        facts = list(real(handle))
        if stat.S_ISREG(facts[stat.ST_MODE]):
            facts[stat.ST_UID] = os.geteuid() + 1234
        return os.stat_result(facts)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", of_another)
        with pytest.raises(DamagedEntry, match="another user's"):
            Cache(folder, 1 << 30).load(entry)
        compile(SAXPY, arch=PTX)
    assert len(runs) == 2


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 200_000 + b"]" * 200_000,
        b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
        b"[1]",
        b"{",
        b"\xff",
        b'{"a":' + b"1" * 10_000 + b"}",
        b'{"kind":"kernel"}',
        b'{"kind":"kernel","format":"ptx","lowered":{},"log":"","signatures":[1]}',
        b'{"kind":"kernel","format":"ptx","lowered":{},"log":"","signatures":{"a":["a",[[1]]]}}',
    ],
    ids=lambda text: text[:20].decode("latin-1"),
)
def test_facts_that_are_none_are_made_anew(folder, runs, text):
    image = compile(SAXPY, arch=PTX)
    (entry,) = cached_kernels(folder)
    Path(entry.path).write_bytes(forged(entry.key, text))
    assert compile(SAXPY, arch=PTX) == image
    assert len(runs) == 2
    assert compile(SAXPY, arch=PTX) == image
    assert len(runs) == 2


# -- its size --------------------------------------------------------------------------------------


def test_the_longest_unused_go_first(tmp_path):
    store = Cache(tmp_path / "cache", 4500)
    for age, key in enumerate("abcd"):
        store.put(key, {}, bytes(1000))
        os.utime(store.path(key), (1000 - age, 1000 - age))
    assert store.get("d") is not None
    store.put("e", {}, bytes(1000))
    assert {e.key for e in store.entries()} == {"a", "b", "d", "e"}
    assert [e.key for e in store.entries()][2:] == ["a", "b"]
    store.put("f", {}, bytes(2500))
    assert {e.key for e in store.entries()} == {"f", "e"}


def test_a_file_over_the_limit_goes_before_entries(tmp_path):
    store = Cache(tmp_path / "cache", 4500)
    for key in "ab":
        store.put(key, {}, bytes(1000))
    with open(store.path("huge"), "wb") as file:
        file.truncate(1 << 42)
    store.put("c", {}, bytes(1000))
    assert {entry.key for entry in store.entries()} == {"a", "b", "c"}


def test_an_entry_over_the_limit_is_not_kept(tmp_path):
    store = Cache(tmp_path / "cache", 500)
    assert not store.put("a", {}, bytes(1000))
    assert store.put("b", {"n": 1}, b"")
    assert store.get("a") is None
    assert store.get("b") == ({"n": 1}, b"")


def test_the_limit_is_a_setting(folder, setting):
    setting(CYRT_CACHE_SIZE="3K")
    for i in range(6):
        compile(SAXPY + "//" * i, arch=PTX)
    assert 0 < sum(path.stat().st_size for path in entries(folder)) <= 3072


def test_clear_takes_only_what_is_its_own(tmp_path):
    store = Cache(tmp_path / "cache", 1 << 20)
    store.put("a", {}, bytes(10))
    old = tmp_path / "cache" / "jit-v0"
    old.mkdir()
    (old / "b.entry").write_bytes(b"old")
    (old / "mine.txt").write_text("mine")
    (tmp_path / "cache" / "other").mkdir()
    (tmp_path / "cache" / "other" / "c.entry").write_text("not of this cache")
    assert store.clear()[0] == 2
    left = {str(p.relative_to(store.root)) for p in (tmp_path / "cache").rglob("*")}
    assert left == {"jit-v0", "jit-v0/mine.txt", "other", "other/c.entry"}
    assert Cache(tmp_path / "none", 1).clear() == (0, 0)


def test_many_threads(folder, runs):
    groups = [[f"axpy<{t}>"] for t in ("int", "float", "double", "short")]
    first = compiler.compile_many(TEMPLATE, groups, arch=PTX)
    assert compiler.compile_many(TEMPLATE, groups, arch=PTX, threads=2) == first
    assert len(runs) == 2 * 4
