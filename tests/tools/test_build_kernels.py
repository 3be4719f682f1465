"""The tool that compiles the prebuilt kernels."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent.parent / "tools"
PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, {tools!r})
import build_kernels as tool
every = tool.sources()
tool.sources = lambda: {{name: every[name] for name in ("copy_uint8", "arange_float32")}}
folder = Path({folder!r})
"""


@pytest.fixture
def tool(python, tmp_path):
    def run(program):
        return python(PROGRAM.format(tools=str(TOOLS), folder=str(tmp_path / "made")) + program)

    return run


@pytest.fixture
def compiler():
    try:
        metadata.distribution("nvidia-cuda-nvrtc-cu12")
    except metadata.PackageNotFoundError:
        pytest.skip("needs NVRTC 12.9: pip install 'nvidia-cuda-nvrtc-cu12==12.9.*'")


def test_only_what_changed_is_compiled(tool, compiler, tmp_path):
    done = tool("""
tool.build(folder, ["9.0"], 1)
tool.check(folder)
tool.build(folder, ["9.0"], 1)
every["copy_uint8"] += "// changed"
tool.build(folder, ["9.0"], 1)
(folder / "compute_90" / "copy_uint8.ptx").unlink()
tool.build(folder, [], 1)
""")
    assert done.returncode == 0, done.stderr
    # Slow builds tell of their progress, too.
    ends = [line for line in done.stdout.splitlines() if "compiled for" in line]
    counts = [line.partition(" modules")[0] for line in ends]
    assert counts == ["4 of 4", "2 of 4", "1 of 2"]
    made = tmp_path / "made"
    assert (made / "compute_90" / "copy_uint8.ptx").read_bytes().startswith(b"//")
    assert not list((made / "sm_90").iterdir())


def test_a_folder_of_other_sources_is_refused(tool, compiler):
    done = tool("""
tool.build(folder, [], 1)
every["copy_uint8"] += "// changed"
tool.check(folder)
""")
    assert done.returncode == 1
    assert "copy_uint8.ptx is missing or was made of other sources" in done.stderr
    done = tool("tool.check(folder / 'none')")
    assert "no folder made by tools/build_kernels.py" in done.stderr


def test_faults_name_what_is_wrong(tool, compiler):
    done = tool("""
every["copy_uint8"] += "nonsense"
tool.build(folder, [], 1)
""")
    assert done.returncode == 1
    assert done.stderr.startswith("copy_uint8.cu("), done.stderr
    assert "nonsense" in done.stderr
    assert "copy_uint8.cu for compute_90: NVRTC_ERROR_COMPILATION" in done.stderr
    done = tool("tool.build(folder, ['7.0'], 1)")
    assert "archs: '7.0' is none of 8.0" in done.stderr


def test_without_the_compiler(tool):
    done = tool("""
tool.WHEEL = "nvidia-no-such-wheel"
tool.build(folder, [], 1)
""")
    assert done.returncode == 1
    assert "pip install 'nvidia-cuda-nvrtc-cu12==12.9.*'" in done.stderr
    assert "-Dprebuilt=off" in done.stderr


@pytest.mark.parametrize(
    ("gpus", "archs"),
    [
        ([], []),
        ([(9, 0), (9, 0), (8, 6)], ["8.6", "9.0"]),
        ([(8, 7), (12, 1)], ["8.6", "12.0"]),  # the highest of the major version that is no later
        ([(7, 5), (11, 0)], []),
    ],
)
def test_native_is_what_the_installed_gpus_run(tool, gpus, archs):
    done = tool(f"""
import ctypes
gpus = {gpus!r}

class Driver:
    def cuInit(self, flags): return 0
    def cuDeviceGetCount(self, count): count._obj.value = len(gpus); return 0
    def cuDeviceGet(self, device, ordinal): device._obj.value = ordinal
    def cuDeviceGetAttribute(self, value, attribute, device):
        value._obj.value = gpus[device.value][attribute - 75]

ctypes.CDLL = lambda name: Driver()
print(tool.archs_of("native"), tool.archs_of("all") == list(tool.ARCHS), tool.archs_of("9.0,8.0"))
""")
    assert done.stdout == f"{archs} True ['9.0', '8.0']\n", done.stderr


def test_without_a_driver_native_is_none(tool):
    done = tool("""
import ctypes
def refuse(name): raise OSError(name)
ctypes.CDLL = refuse
print(tool.archs_of("native"), tool.targets_of([]))
""")
    assert done.stdout == "[] [('compute_90', 'ptx')]\n", done.stderr
