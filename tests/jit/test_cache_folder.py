"""The disk cache's folder: what stands in the way of writing, and other processes that use it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import processes
import pytest
from cache_entries import cached_kernels, entries, forged
from kernel_sources import PTX, SAXPY

from cyrt.jit import cache
from cyrt.jit.cache import Cache
from cyrt.jit.compiler import compile

# -- what stands in the way of writing -------------------------------------------------------------


def test_a_folder_that_is_a_file(setting, folder, runs, tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in ("file", "file/below"):
        setting(CYRT_CACHE_DIR=str(tmp_path / path))
        with pytest.warns(RuntimeWarning, match=f"{path}.*(Not a dir|File exists).*CYRT_CACHE_DIR"):
            image = compile(SAXPY, arch=PTX)
        with warnings.catch_warnings():
            # It is reported once.
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
    (entry,) = cached_kernels(folder)
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
        Path(store.path("a")).write_bytes(cache.pack("a", {"whose": "another's"}, b""))

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
    (tmp_path / "elsewhere" / "a.entry").write_bytes(cache.pack("a", {"n": 2}, b""))
    Path(store.folder).symlink_to(tmp_path / "elsewhere")
    assert store.get("a") is None
    assert store.entries() == []
    assert store.clear() == (0, 0)
    with pytest.warns(RuntimeWarning, match="cannot be written: .*Not a directory"):
        assert not store.put("a", {"n": 3})
    assert cache.unpack("a", (tmp_path / "elsewhere" / "a.entry").read_bytes())[0] == {"n": 2}


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


def test_a_folder_that_always_vanishes_is_reported(tmp_path):
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
        processes.start([sys.executable, "-P", "-W", "error", "-c", program], stdin=subprocess.PIPE)
        for _ in range(2)
    ]
    for worker in workers:
        worker.stdout.readline()
    for worker in workers:
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        done = processes.finish(worker)
        assert done.returncode == 0, done.stderr
    assert len(cached_kernels(folder)) == 10
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
    assert cached_kernels(folder) == []
    compile(SAXPY, arch=PTX)
    compile(SAXPY, arch=PTX)
    assert len(runs) == 1
    # It may be another's that is still being written, until it is old.
    assert left.exists()
    os.utime(left, (time.time() - 7200,) * 2)
    compile(SAXPY + "//", arch=PTX)
    assert not left.exists()
