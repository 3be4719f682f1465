"""``python -m cyrt info``."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = "import sys; from cyrt.cli import main; sys.exit(main(['info']))"


def test_paths_are_whole_in_a_pipe(python):
    done = python(PROGRAM, COLUMNS="40", CYRT_DEVICE="emulated")
    assert done.returncode == 0, done.stderr
    assert "emulated device, CUDA" in done.stdout
    assert "libcyrt_emu.so" in done.stdout
    assert "…" not in done.stdout


def test_a_bad_setting_is_told(python):
    done = python(PROGRAM, CYRT_DEVICE="nonsense")
    assert done.returncode == 1
    assert "CYRT_DEVICE='nonsense'" in done.stdout, done.stderr


def test_what_is_missing_has_its_command(python):
    done = python(
        """
        import sys

        class Hidden:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "nvidia" or name.startswith("cuda.bindings"):
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, Hidden())
        import cyrt
        try:
            cyrt.Kernel('extern "C" __global__ void hidden() { int nvrtc; }', "hidden")
        except cyrt.CompileError as error:
            print(error)
        """,
        CYRT_CACHE_DIR="",
    )
    assert "pip install 'cyrt[cuda13]'" in done.stdout, done.stderr


def test_advice_is_printed_with_its_brackets(python):
    done = python(
        """
        import sys
        from cyrt.cli import info
        info._LIBRARIES = {"[red]cuNone": ("nvrtc_of_nobody", "nothing :smile:", "libs")}
        info._find = lambda name: None
        sys.exit(info.run(None))
        """,
        CYRT_DEVICE="emulated",
    )
    assert done.returncode == 0, done.stderr
    assert "[red]cuNone, for nothing :smile: on a GPU" in done.stdout
    assert "pip install 'cyrt[libs1" in done.stdout


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ('(SimpleNamespace(dotted="9.19.0"), "")', "9.19.0, /lib/libcudnn.so.9"),
        ('(None, "the frontend is too old")', "the frontend is too old"),
    ],
)
def test_cudnn_is_told_or_why_it_is_not_used(python, found, told):
    done = python(
        f"""
        import sys
        from types import SimpleNamespace
        from cyrt.cli import info
        from cyrt.libs import cudnn
        info._LIBRARIES = {{"cuDNN": info._LIBRARIES["cuDNN"]}}
        info._find = lambda name: "/lib/libcudnn.so.9"
        cudnn.find = lambda: {found}
        sys.exit(info.run(None))
        """,
        CYRT_DEVICE="emulated",
    )
    assert done.returncode == 0, done.stderr
    assert told in done.stdout
    assert ("cyrt[cudnn1" in done.stdout) == (found.startswith("(None"))


COMMANDS = [
    ["info"],
    ["cache", "list"],
    ["cache", "verify"],
    ["bench", "--case", "chain", "--rounds", "1"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("output", "unbuffered", "status", "told"),
    [
        (">&- 2>&-", "", 0, ""),
        ("> /dev/full", "", 1, "cyrt: the output cannot be written: No space left on device\n"),
        ("> /dev/full", "1", 1, "cyrt: the output cannot be written: No space left on device\n"),
        ("| true", "", 1, ""),
    ],
)
def test_an_output_that_nobody_reads(command, output, unbuffered, status, told):
    line = f"set -o pipefail; {sys.executable} -P -m cyrt {' '.join(command)} {output}"
    done = subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "CYRT_DEVICE": "emulated", "PYTHONUNBUFFERED": unbuffered},
    )
    assert (done.returncode, done.stderr) == (status, told)


def test_too_few_addresses_for_the_emulated_device(python):
    program = """
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    import cyrt
    try:
        cyrt.ones(1)
    except cyrt.OutOfMemoryError as error:
        print(error)
    """
    done = python(program, CYRT_DEVICE="emulated", CYRT_EMULATED_MEMORY="8G")
    assert "ulimit -v" in done.stdout, done.stderr
    assert "CYRT_EMULATED_MEMORY" in done.stdout
    done = python(program, CYRT_DEVICE="emulated", CYRT_EMULATED_MEMORY="64M")
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
