"""``python -m cyrt info``."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from importlib import metadata
from types import SimpleNamespace

import numpy as np
import processes
import pytest

import cyrt
from cyrt import settings
from cyrt.builtin import loading
from cyrt.cli import main
from cyrt.jit.compiler import compile

PROGRAM = "import sys; from cyrt.cli import main; sys.exit(main(['info']))"


def test_paths_are_whole_in_a_pipe(python):
    done = python(PROGRAM, COLUMNS="40", CYRT_DEVICE="emulated")
    assert done.returncode == 0, done.stderr
    assert "emulated device, CUDA" in done.stdout
    assert "libcyrt_emu.so" in done.stdout
    wide = [line for line in map(str.rstrip, done.stdout.splitlines()) if len(line) > 100]
    assert all(line[14:].count(" ") <= 4 and "/" in line for line in wide), wide  # one path each
    assert "…" not in done.stdout


def test_a_bad_setting_is_named(python):
    for name, text in (("CYRT_DEVICE", "nonsense"), ("CYRT_EMULATED_DEVICES", "0")):
        done = python(PROGRAM, **{name: text})
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"cyrt info: {name}='{text}': expected")
        assert done.stderr.count("\n") == 1


def test_a_package_that_a_setting_needs_is_named(python):
    done = python(f"import sys; sys.modules['nvtx'] = None\n{PROGRAM}", CYRT_NVTX="1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "cyrt info: CYRT_NVTX='1': it needs the package nvtx, which is not installed: "
        "pip install nvtx\n"
    )


def test_the_tables_are_printed_if_no_device_opens(python):
    program = f"""
    import ctypes
    real = ctypes.CDLL

    def open_library(name, *more, **options):
        if name == "libcuda.so.1":
            raise OSError(f"{{name}}: there is none")
        return real(name, *more, **options)

    ctypes.CDLL = open_library
    {PROGRAM}
    """
    done = python(program, CYRT_DEVICE="cuda")
    assert done.returncode == 2
    driver, advice = [line.strip() for line in done.stdout.splitlines() if "NVIDIA driver" in line][
        :2
    ]
    assert driver.startswith("driver")
    assert driver.endswith("the NVIDIA driver (libcuda.so.1) cannot be opened: there is none")
    assert advice.startswith("No GPU is visible: ")
    assert "the NVIDIA driver (libcuda.so.1):" in done.stdout[done.stdout.index("missing") :]
    assert done.stderr == (
        "cyrt info: dlopen failed: CUDA_ERROR_NO_DEVICE (100): the NVIDIA driver (libcuda.so.1) "
        "cannot be opened: there is none. No GPU is visible: install the NVIDIA driver, check "
        "nvidia-smi and CUDA_VISIBLE_DEVICES, or set CYRT_DEVICE=emulated\n"
    )


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
    assert "pip install 'cyrt[cu13]'" in done.stdout, done.stderr


@pytest.mark.parametrize("command", [["info"], ["bench", "--case", "chain", "--rounds", "1"]])
def test_no_compiler(python, command):
    done = python(
        f"""
        import sys
        sys.modules["cuda.bindings"] = sys.modules["cuda.bindings.nvrtc"] = None
        from cyrt.cli import main
        sys.exit(main({command}))
        """,
        CYRT_DEVICE="emulated",
        CYRT_CACHE="0",
    )
    if command == ["info"]:
        assert (done.returncode, done.stderr) == (1, "")
        assert "NVRTC, to compile kernels from source" in done.stdout
    else:
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("cyrt bench: ")
    assert "pip install 'cyrt[cu13]'" in done.stdout + done.stderr
    assert done.stderr.count("\n") == len(done.stderr.splitlines()) < 2


def test_advice_is_printed_with_its_brackets(python):
    done = python(
        """
        import sys
        from types import SimpleNamespace
        from cyrt import configuration
        from cyrt.cli import info
        configuration._LIBRARIES = {"[red]cuNone": ("nvrtc_of_nobody", "nothing :smile:", "libs")}
        configuration._find = lambda name: None
        sys.exit(info.run(SimpleNamespace(json=False)))
        """,
        CYRT_DEVICE="emulated",
    )
    assert done.returncode == 0, done.stderr
    assert "[red]cuNone, for nothing :smile: on a GPU" in done.stdout
    assert "pip install 'cyrt[libs1" in done.stdout


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ('(SimpleNamespace(dotted="9.19.0"), "")', "9.19.0, /lib/libcudnn.so.9"),
        ('(None, "the frontend is too old")', "the frontend is too old"),
    ],
)
def test_cudnn_is_listed_or_why_it_is_not_used(python, found, message):
    done = python(
        f"""
        import sys
        from types import SimpleNamespace
        from cyrt import configuration
        from cyrt.cli import info
        from cyrt.libs import cudnn
        configuration._LIBRARIES = {{"cuDNN": configuration._LIBRARIES["cuDNN"]}}
        configuration._find = lambda name: "/lib/libcudnn.so.9"
        cudnn.find = lambda: {found}
        sys.exit(info.run(SimpleNamespace(json=False)))
        """,
        CYRT_DEVICE="emulated",
    )
    assert done.returncode == 0, done.stderr
    assert message in done.stdout
    assert ("cyrt[cudnn1" in done.stdout) == (found.startswith("(None"))


def test_one_source_for_info_its_json_and_show_config(python, tmp_path):
    # Other tests write to the common cache meanwhile.
    chosen = {"CYRT_DEVICE": "emulated", "CYRT_MAX_OPS_PER_GRAPH": "77"}
    chosen["CYRT_CACHE_DIR"] = str(tmp_path)
    done = python(
        """
        import contextlib, io, json
        import cyrt
        from cyrt.cli import main

        def printed(call, *arguments):
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                call(*arguments)
            return text.getvalue()

        cyrt.asarray([1]).numpy()
        facts = json.loads(printed(main, ["info", "--json"]))
        again = cyrt.show_config(mode="dicts")
        for each in (facts, again):
            for device in each["devices"]:
                device.pop("memory_free")
        assert facts == again, (facts, again)
        assert cyrt.show_config(mode="dicts")["devices"][0]["memory_free"] > 0
        text = printed(cyrt.show_config)
        assert text == printed(main, ["info"])
        assert not [line for line in text.splitlines() if line != line.rstrip()]
        print(json.dumps(facts))
        """,
        **chosen,
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["cyrt"] == metadata.version("cyrt")
    assert facts["numpy"] == np.__version__
    assert facts["python"].startswith(platform.python_version())
    assert re.fullmatch(r"\d+\.\d+\.\d+", facts["cython"])
    assert facts["driver"]["kind"] == "emulated device"
    assert facts["settings"] == chosen | {
        name: os.environ[name]
        for name, setting in settings.SETTINGS.items()
        if name in os.environ and name not in chosen and settings.get(name) != setting.default
    }
    assert facts["devices"][0]["compute_capability"] == "9.0"
    assert facts["cache"].keys() == {"folder", "exists", "used", "entries", "bytes", "limit"}


def test_show_config_refuses_other_modes():
    with pytest.raises(ValueError, match="mode: expected 'stdout' or 'dicts', got 'json'"):
        cyrt.show_config("json")


@pytest.mark.parametrize(
    "command", [["info"], ["cache"], ["bench", "--case", "chain", "--rounds", "1"]], ids=" ".join
)
def test_a_narrow_terminal_loses_no_words(folder, capsys, monkeypatch, command):
    compile('extern "C" __global__ void plain(int n) {}', arch="sm_90", filename="narrow_file.cu")
    assert main(command) == 0
    piped = capsys.readouterr().out
    assert not [line for line in piped.splitlines() if line != line.rstrip()]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("TERM", "dumb")
    assert main(command) == 0
    narrow = capsys.readouterr().out
    assert max(map(len, narrow.splitlines())) <= 50
    assert "…" not in narrow

    # A path's word may be on two lines.
    whole = re.sub(r"[^A-Za-z]", "", narrow)
    lost = [word for word in re.findall(r"[A-Za-z]{3,}", piped) if word not in whole]
    assert lost == []
    for title in ("case", "key", "driver"):  # the first column
        if re.search(rf"^\W*{title}\b", piped, re.MULTILINE):
            assert re.search(rf"^{title} ", narrow, re.MULTILINE)


COMMANDS = [
    ["info"],
    ["cache", "list"],
    ["cache", "verify"],
    ["bench", "--case", "chain", "--rounds", "1"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("output", "unbuffered", "status", "message"),
    [
        (">&- 2>&-", "", 0, ""),
        ("> /dev/full", "", 1, "cyrt: the output cannot be written: No space left on device\n"),
        ("> /dev/full", "1", 1, "cyrt: the output cannot be written: No space left on device\n"),
        ("| true", "", 1, ""),
    ],
)
def test_an_output_that_nobody_reads(command, output, unbuffered, status, message):
    line = f"set -o pipefail; {sys.executable} -P -m cyrt {' '.join(command)} {output}"
    done = processes.run(
        ["bash", "-c", line],
        env={**os.environ, "CYRT_DEVICE": "emulated", "PYTHONUNBUFFERED": unbuffered},
    )
    assert (done.returncode, done.stderr) == (status, message)


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


@pytest.mark.parametrize(
    ("capability", "message"),
    [
        ((9, 0), "prebuilt cubin sm_90"),
        ((8, 9), "prebuilt cubin sm_80"),
        ((11, 0), "prebuilt PTX compute_90, which the driver compiles at first use"),
        ((7, 5), "none is prebuilt for it: NVRTC compiles each at first use"),
    ],
)
def test_where_the_built_in_kernels_of_a_gpu_come_from(tmp_path, monkeypatch, capability, message):
    for folder in ("sm_80", "sm_90", "compute_90"):
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(loading, "PREBUILT", tmp_path)
    device = SimpleNamespace(compute_capability=capability, emulated=False)
    assert loading.best_origin(device) == message


def test_a_missing_package_is_named(python):
    done = python(
        """
        import sys
        sys.modules["rich"] = sys.modules["rich.console"] = sys.modules["rich.table"] = None
        from cyrt.cli import main
        sys.exit(main(["cache"]))
        """
    )
    assert (done.returncode, done.stdout) == (2, "")
    message = "cyrt cache: it needs rich, which is not installed: pip install rich\n"
    assert done.stderr == message


@pytest.mark.parametrize(
    "command", [["bench", "--case", "chain"], ["bench", "--case", "chain", "--json", "rows.json"]]
)
def test_no_device(command, tmp_path):
    done = processes.run(
        [sys.executable, "-P", "-m", "cyrt", *command],
        cwd=tmp_path,
        env={**os.environ, "CYRT_DEVICE": "cuda", "CUDA_VISIBLE_DEVICES": ""},
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "set CYRT_DEVICE=emulated" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["inform"], "invalid choice: 'inform'"),
        (["info", "--all"], "unrecognized arguments: --all"),
        (["cache", "show"], "the following arguments are required: KEY"),
        (["bench", "--rounds", "many"], "cyrt bench: argument --rounds: invalid int value: 'many'"),
    ],
)
def test_wrong_options_are_one_line(arguments, message, capsys):
    with pytest.raises(SystemExit) as leaving:
        main(arguments)
    output = capsys.readouterr()
    assert leaving.value.code == 2
    assert message in output.err
    assert "--help" in output.err
    assert (output.out, output.err.count("\n")) == ("", 1)
