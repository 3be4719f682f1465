"""The disk cache: what is kept, what is not trusted, and what stands in its way."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from cyrt.driver.errors import CompileError
from cyrt.jit import cache, compiler, job, nvrtc, toolchain
from cyrt.jit.cache import Cache, DamagedEntry
from cyrt.jit.compiler import compile

PTX = "compute_90"
SAXPY = """\
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}"""
TEMPLATE = "template<class T> __global__ void axpy(T a, T* y) { *y += a; } __device__ int counter;"


@pytest.fixture
def runs(monkeypatch):
    """Counts NVRTC's runs."""
    found = []
    run = nvrtc.run
    monkeypatch.setattr(nvrtc, "run", lambda *a, **k: found.append(a) or run(*a, **k))
    return found


def entries(folder):
    return sorted((folder / f"jit-v{cache.FORMAT}").glob("*.entry"))


def kernels(folder):
    found = Cache(folder, 1 << 30)
    return [e for e in found.entries() if found.load(e)[0]["kind"] == "kernel"]


# -- what is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", [PTX, "sm_90"])
def test_the_second_time_nothing_is_compiled(folder, runs, arch):
    names = ["axpy<float>", "&counter"]
    first = compile("#warning told\n" + TEMPLATE, names, arch=arch)
    assert len(runs) == 1
    assert compile("#warning told\n" + TEMPLATE, names, arch=arch) == first
    assert len(runs) == 1
    assert "told" in first.log


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
    assert kernels(folder) == []


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
    assert kernels(folder) == []


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
    (other,) = kernels(folder)
    image = compile(SAXPY, arch="sm_90")
    (own,) = [e for e in kernels(folder) if e.key != other.key]
    with open(other.path, "rb") as source, open(own.path, "wb") as target:
        target.write(source.read())
    with pytest.raises(DamagedEntry, match="another entry's"):
        Cache(folder, 1 << 30).load(own)
    assert compile(SAXPY, arch="sm_90") == image
    assert len(runs) == 3


def test_an_unreadable_entry_is_made_anew(folder, runs):
    image = compile(SAXPY, arch=PTX)
    (entry,) = kernels(folder)
    os.unlink(entry.path)
    os.symlink(entry.path, entry.path)
    assert compile(SAXPY, arch=PTX) == image
    assert compile(SAXPY, arch=PTX) == image
    assert len(runs) == 2


@pytest.mark.parametrize("kind", ["fifo", "endless", "link", "folder", "sparse", "forged sparse"])
def test_what_is_no_regular_file_of_its_size_is_made_anew(folder, runs, tmp_path, kind):
    image = compile(SAXPY, arch=PTX)
    (entry,) = kernels(folder)
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
    (entry,) = kernels(folder)
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
    (entry,) = kernels(folder)
    path = Path(entry.path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DamagedEntry, match=r"altered or truncated: \d+ bytes, and \d+ were"):
        Cache(folder, 1 << 30).load(entry)


def test_an_entry_that_others_may_write_is_made_anew(folder, runs):
    compile(SAXPY, arch=PTX)
    (entry,) = kernels(folder)
    os.chmod(entry.path, 0o666)
    with pytest.raises(DamagedEntry, match="others may write"):
        Cache(folder, 1 << 30).load(entry)
    compile(SAXPY, arch=PTX)
    compile(SAXPY, arch=PTX)
    assert len(runs) == 2
    assert os.stat(entry.path).st_mode & 0o777 == 0o600


def test_an_entry_of_another_user_is_made_anew(folder, runs, monkeypatch):
    compile(SAXPY, arch=PTX)
    (entry,) = kernels(folder)
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


def forged(key, text, body=b""):
    """An entry whose checksum is right, whatever its facts are."""
    sizes = len(text), len(body)
    checksum = cache._checksum(key, sizes, text + body)
    return cache._HEADER.pack(cache._MAGIC, *sizes, checksum) + text + body


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
    (entry,) = kernels(folder)
    Path(entry.path).write_bytes(forged(entry.key, text))
    assert compile(SAXPY, arch=PTX) == image
    assert len(runs) == 2
    assert compile(SAXPY, arch=PTX) == image
    assert len(runs) == 2


# -- what stands in the way of writing -------------------------------------------------------------


def test_a_folder_that_is_a_file(setting, folder, runs, tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in ("file", "file/below"):
        setting(CYRT_CACHE_DIR=str(tmp_path / path))
        with pytest.warns(RuntimeWarning, match=f"{path}.*(Not a dir|File exists).*CYRT_CACHE_DIR"):
            image = compile(SAXPY, arch=PTX)
        with warnings.catch_warnings():
            # It is told once.
            warnings.simplefilter("error")
            assert compile(SAXPY, arch=PTX) == image
    assert len(runs) == 4
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_cannot_be_written(setting, folder, runs):
    # Not even root makes folders there.
    setting(CYRT_CACHE_DIR="/proc/self/cyrt")
    with pytest.warns(RuntimeWarning, match="/proc/self/cyrt.*cannot be written"):
        compile(SAXPY, arch=PTX)


def test_a_read_only_cache_still_serves(folder, runs, monkeypatch):
    compile(SAXPY, arch=PTX)

    def refused(*arguments, **more):
        raise PermissionError(30, "Read-only file system")

    for name in ("mkdir", "utime", "replace", "unlink"):
        monkeypatch.setattr(os, name, refused)
    real = os.open

    def opened(path, flags, *arguments, **more):
        return (refused if flags & os.O_CREAT else real)(path, flags, *arguments, **more)

    monkeypatch.setattr(os, "open", opened)
    compile(SAXPY, arch=PTX)
    assert len(runs) == 1
    with pytest.warns(RuntimeWarning, match="Read-only file system"):
        compile(SAXPY + "//", arch=PTX)


def test_a_full_disk_leaves_nothing_behind(folder, runs, python):
    compile(SAXPY, arch=PTX)
    before = entries(folder)
    done = python(
        f"""
        import resource, warnings
        from cyrt.jit.compiler import compile
        # No file may grow over 512 bytes.
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            image = compile({SAXPY!r}, ["saxpy"], arch="sm_90")
        print(len(image.code) > 1000, [str(w.message) for w in caught])
        """
    )
    assert done.stdout.startswith("True ['the cache"), done.stderr
    assert "File too large" in done.stdout
    assert entries(folder) == before
    assert not list(folder.rglob("*.partial"))


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_that_others_may_write_is_not_trusted(folder, runs, mode):
    compile(SAXPY, arch=PTX)
    entries(folder)[0].parent.chmod(mode)
    cache.current.cache_clear()
    with pytest.warns(RuntimeWarning, match="cannot be trusted"):
        compile(SAXPY, arch=PTX)
    assert len(runs) == 2


def test_trust_is_asked_at_each_use(folder, runs):
    compile(SAXPY, arch=PTX)
    (entry,) = kernels(folder)
    own = Path(entry.path).parent
    own.rename(folder / "aside")
    own.mkdir()
    own.chmod(0o777)
    (own / os.path.basename(entry.path)).write_bytes(forged(entry.key, b"{}"))
    with pytest.warns(RuntimeWarning, match="cannot be trusted"):
        compile(SAXPY, arch=PTX)
    assert len(runs) == 2


def test_a_folder_exchanged_after_it_was_trusted_is_not_read(tmp_path, monkeypatch):
    store = Cache(tmp_path / "cache", 1 << 20)
    store.put("a", {"whose": "mine"})
    real = cache._check_trust

    def exchanged(handle):
        real(handle)
        os.rename(store.folder, tmp_path / "aside")
        os.mkdir(store.folder)
        Path(store.path("a")).write_bytes(cache.packed("a", {"whose": "another's"}, b""))

    monkeypatch.setattr(cache, "_check_trust", exchanged)
    assert store.get("a") == ({"whose": "mine"}, b"")


def test_only_the_root_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    store = Cache(tmp_path / "link", 1 << 20)
    assert store.put("a", {"n": 1})
    assert store.get("a") == ({"n": 1}, b"")
    assert store.clear()[0] == 1

    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.entry").write_bytes(cache.packed("a", {"n": 2}, b""))
    Path(store.folder).symlink_to(tmp_path / "elsewhere")
    assert store.get("a") is None
    assert store.entries() == []
    assert store.clear() == (0, 0)
    with pytest.warns(RuntimeWarning, match="cannot be written: .*Not a directory"):
        assert not store.put("a", {"n": 3})
    assert cache.unpacked("a", (tmp_path / "elsewhere" / "a.entry").read_bytes())[0] == {"n": 2}


# -- many processes --------------------------------------------------------------------------------


@pytest.fixture
def silent():
    """Warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_clear_leaves_what_is_being_written(tmp_path, monkeypatch, silent):
    store, other = (Cache(tmp_path / "cache", 1 << 20) for _ in range(2))
    store.put("old", {})
    real = os.replace
    cleared = []

    def replace(*arguments, **more):
        cleared.append(other.clear()[0])
        real(*arguments, **more)

    monkeypatch.setattr(os, "replace", replace)
    assert store.put("a", {"n": 1})
    assert store.get("a") == ({"n": 1}, b"")
    assert cleared == [1]


@pytest.mark.parametrize("call", ["mkdir", "open", "replace"])
def test_a_folder_that_vanishes_is_made_again(tmp_path, monkeypatch, silent, call):
    store = Cache(tmp_path / "cache", 1 << 20)
    store.put("old", {})
    real = getattr(os, call)
    removed = []

    def meanwhile(*arguments, **more):
        # In the moment before a file is made, or before the folder is.
        if not removed and (call != "open" or "dir_fd" in more):
            removed.append(True)
            shutil.rmtree(tmp_path / "cache")
        return real(*arguments, **more)

    monkeypatch.setattr(os, call, meanwhile)
    assert store.put("a", {"n": 1})
    assert removed
    assert store.get("a") == ({"n": 1}, b"")
    assert not list((tmp_path / "cache").rglob("*.partial"))


def test_a_folder_that_always_vanishes_is_told(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.warns(RuntimeWarning, match="cannot be written: .*No such file"):
        assert not Cache(tmp_path / "link", 1 << 20).put("a", {})


def test_an_entry_that_another_removes_first(tmp_path, monkeypatch, silent):
    store, other = (Cache(tmp_path / "cache", 2500) for _ in range(2))
    for key in "abc":
        store.put(key, {}, bytes(600))
    real = os.stat

    def meanwhile(path, *arguments, **more):
        if "dir_fd" in more and path == "a.entry":
            monkeypatch.setattr(os, "stat", real)
            os.unlink(store.path("a"))
        return real(path, *arguments, **more)

    monkeypatch.setattr(os, "stat", meanwhile)
    assert store.put("d", {}, bytes(600))
    assert {entry.key for entry in other.entries()} == {"b", "c", "d"}
    assert other.clear()[0] == 3


def test_processes_that_compile_the_same(folder):
    program = f"""
import sys
from cyrt.jit import compiler, toolchain
toolchain.library()
print(flush=True)
sys.stdin.readline()
for i in range(10):
    image = compiler.compile({SAXPY!r} + "//" * i, ["saxpy"], arch="compute_90")
    assert b".entry saxpy" in image.code
"""
    workers = [
        subprocess.Popen(
            [sys.executable, "-P", "-W", "error", "-c", program], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]  # fmt: skip
    for worker in workers:
        worker.stdout.readline()
    for worker in workers:
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        _, said = worker.communicate(timeout=60)
        assert worker.returncode == 0, said
    assert len(kernels(folder)) == 10
    assert not list(folder.rglob("*.partial"))


def test_a_writer_that_is_killed(folder, runs, python):
    done = python(
        f"""
        import os, signal
        from cyrt.jit.compiler import compile
        from cyrt.jit import toolchain
        toolchain.library()
        os.replace = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
        compile({SAXPY!r}, arch="compute_90")
        """
    )
    assert done.returncode == -signal.SIGKILL
    (left,) = folder.rglob("*.partial")
    assert kernels(folder) == []
    compile(SAXPY, arch=PTX)
    compile(SAXPY, arch=PTX)
    assert len(runs) == 1
    # It may be another's that is still being written, until it is old.
    assert left.exists()
    os.utime(left, (time.time() - 7200,) * 2)
    compile(SAXPY + "//", arch=PTX)
    assert not left.exists()


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
    assert len(runs) == 4
