"""Each example runs, at a small size, and says what it found."""

from __future__ import annotations

import importlib.util
import os
import re
import struct
import zlib
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# For each example: arguments for a small size, and a pattern of what it prints. That of the digits
# is the default, with which it reaches 97 %.
RUNS = {
    "characters": (
        ("--until", "4", "--width", "32", "--layers", "1", "--context", "16", "--batch", "8"),
        "the loss fell from",
    ),
    "custom_kernel": (("--size", "96", "--steps", "2"), "agree with NumPy"),
    "digits": (("--size", "1437"), r"accuracy on 360 other digits (9[789]|100)\."),
    "game_of_life": (("--size", "8", "--steps", "6"), "2 cells further down and to the right"),
    "image_blur": (("--size", "32", "--output", "small.png"), "small.png: 64 x 32 pixels"),
    "logistic_regression": (("--size", "100"), "the loss fell"),
    "mlp": (("--size", "32", "--hidden", "8", "--steps", "10"), "steps a second"),
    "pagerank": (("--size", "50"), "NumPy agrees"),
    "pipeline": (("--size", "256", "--parts", "3", "--times", "8"), "overlapped"),
    "saxpy": ((), "agrees with NumPy"),
    "tutorial": ((), "6 Training"),
}
# Those that need another library and a GPU: the library, and a part of what they print.
OTHERS = {"with_cupy": ("cupy", "share their memory"), "with_torch": ("torch", "in one batch")}


@pytest.fixture
def run(fork_server, tmp_path):
    """Run an example in a process of its own."""

    def run(name, *arguments):
        return fork_server.run([EXAMPLES / f"{name}.py", *arguments], cwd=tmp_path, env=os.environ)

    return run


def test_every_example_is_run():
    # Kept by their own tests.
    elsewhere = {"transformer_decode"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} - elsewhere == {*RUNS, *OTHERS}


@pytest.mark.parametrize("name", sorted(RUNS))
def test_example(run, name):
    arguments, text = RUNS[name]
    done = run(name, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(text, done.stdout), done.stdout


def test_the_loss_is_drawn(run, tmp_path):
    pytest.importorskip("matplotlib", reason="draws with matplotlib, which is not installed")
    size = ("--width", "16", "--layers", "1", "--heads", "2", "--context", "8", "--batch", "2")
    done = run("characters", "--until", "9", *size, "--plot", "loss.png")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the loss of each step: loss.png" in done.stdout
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize("name", sorted(name for name in RUNS if "--size" in RUNS[name][0]))
@pytest.mark.parametrize("size", ["0", "-5"])
def test_a_size_of_nothing_is_refused_in_one_line(run, name, size):
    done = run(name, "--size", size)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(rf"error: --size: .* or more, got {size}\n$", done.stderr)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("mlp", "--hidden", "0"),
        ("pagerank", "--links", "0"),
        ("image_blur", "--sigma", "0.0"),
        ("image_blur", "--output", "nowhere/blurred.png"),
    ],
)
def test_other_options_are_refused_in_one_line(run, name, option, value):
    done = run(name, option, value)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: {option}: " in done.stderr
    assert "Traceback" not in done.stderr


def test_the_picture_is_a_png(run, tmp_path):
    """Its parts, by the PNG specification: their checksums, and the bytes of its lines."""
    done = run("image_blur", "--size", "16", "--output", "it.png")
    assert done.returncode == 0, done.stderr
    data = (tmp_path / "it.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    parts, at = {}, 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert zlib.crc32(kind + body) == checksum
        parts[kind] = body
        at += 12 + length
    assert list(parts) == [b"IHDR", b"IDAT", b"IEND"]
    assert struct.unpack(">II", parts[b"IHDR"][:8]) == (32, 16)
    assert len(zlib.decompress(parts[b"IDAT"])) == 16 * (1 + 3 * 32)


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_missing_library_is_told_in_one_line(run, name):
    library, _ = OTHERS[name]
    if importlib.util.find_spec(library) is not None:
        pytest.skip(f"{library} is installed")
    done = run(name)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"{name}.py needs" in done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("name", sorted(OTHERS))
def test_with_another_library(run, name):
    library, text = OTHERS[name]
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"needs {library}")
    done = run(name, "--size", "64")
    assert done.returncode == 0, done.stdout + done.stderr
    assert text in done.stdout
