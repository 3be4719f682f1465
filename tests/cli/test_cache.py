"""``python -m cyrt cache``."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from cyrt.cli import main
from cyrt.jit.cache import Cache
from cyrt.jit.compiler import compile

SOURCE = """
template<class T> __global__ void axpy(T a, const T* x, T* y) { *y += a * *x; }
extern "C" __global__ void plain(int n) {}
"""


@pytest.fixture(autouse=True)
def uncached(setting):
    """No cache but for tests that use ``folder``."""
    setting(CYRT_CACHE="0")


@pytest.fixture
def filled(folder):
    compile(SOURCE, ["axpy<float>"], arch="sm_90", filename="mine[red].cu", define={"N": 3})
    store = Cache(folder, 1 << 30)
    (entry,) = [e for e in store.entries() if store.load(e)[0]["kind"] == "kernel"]
    return entry


def said(capsys, *arguments, status=0):
    assert main(["cache", *arguments]) == status
    return capsys.readouterr().out


def refusal(capsys, *arguments):
    assert main(["cache", *arguments]) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    return output.err


def test_list(filled, capsys):
    os.utime(filled.path, (time.time() - 3 * 3600,) * 2)
    lines = said(capsys, "list").splitlines()
    (line,) = [line for line in lines if line.startswith(filled.key[:12])]
    for part in ("axpy<float>", "plain", "sm_90", "mine[red].cu", "KiB", "3 h"):
        assert part in line
    assert "2 entries" in lines[-1]
    assert "of 1.0 GiB" in lines[-1]
    assert max(map(len, lines[:-1])) <= 100


def test_long_names_do_not_lengthen_other_lines(filled, folder, capsys):
    name = f"kernel_{'of_a_long_name_' * 6}"
    compile(f'extern "C" __global__ void {name}() {{}}', arch="sm_90")
    lines = said(capsys, "list").splitlines()
    (long,) = [line for line in lines if name in line]
    assert all(len(line) < 100 for line in lines[:-1] if line != long)
    assert len(long) > len(name)


def test_the_list_is_the_default(filled, capsys):
    assert said(capsys) == said(capsys, "list")


def test_long_names_are_cut_in_a_terminal_only(folder, capsys, monkeypatch):
    names = [f"kernel_{'of_a_long_name_' * 6}{i}" for i in range(2)]
    compile("".join(f'extern "C" __global__ void {name}() {{}}\n' for name in names), arch="sm_90")
    assert all(name in said(capsys, "list") for name in names)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the output for a terminal
    monkeypatch.setenv("NO_COLOR", "1")
    lines = said(capsys, "list").splitlines()
    (row,) = [i for i, line in enumerate(lines) if "kernel_of_a_long_name_of" in line][:1]
    for line in lines[row : row + 2]:
        assert len(line) <= 100
        assert "kernel_of_a_long_name_of_a_" in line
        assert "…" in line
    store = Cache(folder, 1 << 30)
    (key,) = [e.key for e in store.entries() if store.load(e)[0]["kind"] == "kernel"]
    assert lines[row].startswith(key[:12])
    assert all(name in said(capsys, "show", key) for name in names)


def test_show(filled, capsys):
    text = said(capsys, "show", filled.key[:9])
    for part in (
        "void axpy<float>(float a, const float* x, float* y)", "void plain(int n)", "-std=c++17",
        "#define N 3", "_Z4axpyIfEvT_PKS0_PS0_", "libnvrtc", filled.path, "cubin",
    ):  # fmt: skip
        assert part in text
    assert refusal(capsys, "show", "zz").startswith("cyrt cache: no entry begins with 'zz' in")
    first = os.path.join(os.path.dirname(filled.path), filled.key[:9])
    shutil.copy(filled.path, f"{first}-again.entry")
    assert f"2 entries begin with {filled.key[:9]!r} in" in refusal(capsys, "show", filled.key[:9])
    assert "KEY: expected a key" in refusal(capsys, "show", "")


def test_verify_names_what_is_damaged(filled, capsys):
    assert "2 entries, 0 damaged" in said(capsys, "verify")
    with open(filled.path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\xff")
    text = said(capsys, "verify", status=1)
    assert f"{filled.path}: altered" in text
    assert "2 entries, 1 damaged" in text
    assert "damaged: altered" in said(capsys, "list")
    assert "altered" in said(capsys, "show", filled.key, status=1)


@pytest.mark.parametrize("action", ["list", "verify", "show"])
def test_an_entry_that_vanishes_is_not_damaged(filled, capsys, monkeypatch, action):
    real = Cache.entries

    def entries(self):
        found = real(self)
        self.clear()  # another process, in the worst moment
        return found

    monkeypatch.setattr(Cache, "entries", entries)
    if action == "show":
        assert "no entry begins" in refusal(capsys, "show", filled.key)
    else:
        text = said(capsys, action)
        assert "0 entries" in text
        assert "verify" not in action or "0 damaged" in text


def test_files_of_odd_kinds_are_damaged_and_cleared(filled, capsys, folder):
    place = os.path.dirname(filled.path)
    os.mkfifo(f"{place}/fifo.entry")
    os.symlink("/dev/zero", f"{place}/link.entry")
    os.mkdir(f"{place}/folder.entry")
    with open(f"{place}/sparse.entry", "wb") as file:
        file.truncate(1 << 42)
    text = said(capsys, "verify", status=1)
    assert text.count("not a regular file") == 3
    assert "more than the cache may hold" in text
    assert "6 entries, 4 damaged" in text
    assert "6 entries" in said(capsys, "list")
    assert "not a regular file" in said(capsys, "show", "fifo", status=1)
    assert "6 entries removed" in said(capsys, "clear")
    assert not list(folder.rglob("*.entry"))
    assert os.path.exists("/dev/zero")


def test_clear(filled, capsys, folder):
    assert "2 entries removed" in said(capsys, "clear")
    assert "0 entries, 0 bytes" in said(capsys, "list")
    assert not list(folder.rglob("*.entry"))


def test_a_folder_that_is_a_file_and_a_bad_setting(setting, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    setting(CYRT_CACHE_DIR=str(tmp_path))
    assert "CYRT_CACHE=0" in said(capsys, "list")
    for name, reason in (("file", "it is not a folder"), ("file/more", "Not a directory")):
        setting(CYRT_CACHE_DIR=str(tmp_path / name))
        for arguments in (["list"], ["verify"], ["clear"], ["show", "a"]):
            text = refusal(capsys, *arguments)
            assert f"the cache folder {tmp_path / name} cannot be used: {reason}; set CYRT" in text
        assert main(["info"]) == 2
        assert f"cyrt info: the cache folder {tmp_path / name} can" in capsys.readouterr().err
    setting(CYRT_CACHE_DIR=str(tmp_path / "new" / "folder"))
    assert "0 entries" in said(capsys, "list")
    assert not (tmp_path / "new").exists()
    assert (tmp_path / "file").read_text() == "mine"
    setting(CYRT_CACHE_SIZE="much")
    assert main(["cache", "list"]) == 2
    assert "CYRT_CACHE_SIZE='much'" in capsys.readouterr().err
