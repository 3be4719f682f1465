"""What the release tool writes; wheels themselves are built by whoever makes a release."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool():
    sys.path.insert(0, str(ROOT / "tools"))
    import release

    yield release
    sys.path.remove(str(ROOT / "tools"))


def test_the_version_is_that_of_the_package(tool):
    import cyrt

    assert tool.version() == cyrt.__version__


def test_extras_that_are_made_of_others(tool):
    both = tool.requirements("libs13")
    assert set(tool.requirements("cublas13")) < set(both)
    assert not any(each.startswith("cyrt") for each in both)
    assert tool.requirements("cuda13") == tool.requirements("cu13")
    with pytest.raises(KeyError, match="cu11"):
        tool.requirements("cu11")


def test_metadata_is_added_to_a_wheel(tool, tmp_path):
    info = tmp_path / "some-1.0" / "some-1.0.dist-info"
    info.mkdir(parents=True)
    metadata = "Metadata-Version: 2.1\nName: some\nVersion: 1.0\nRequires-Dist: numpy>=2\n"
    (info / "METADATA").write_text(metadata)
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")
    tool.run(sys.executable, "-m", "wheel", "pack", "--dest-dir", tmp_path, info.parent)
    wheel = tmp_path / "some-1.0-py3-none-any.whl"
    lines = ["Project-URL: Issues, https://example.org/issues", "Requires-Dist: other==1.0"]
    tool.add_metadata(Path(sys.executable), wheel, lines)
    with zipfile.ZipFile(wheel) as archive:
        found = archive.read("some-1.0.dist-info/METADATA").decode()
        assert (
            "some-1.0.dist-info/METADATA,sha256="
            in archive.read("some-1.0.dist-info/RECORD").decode()
        )
    assert "\n".join(["Version: 1.0", *lines, "Requires-Dist: numpy>=2\n"]) in found


def test_a_configuration_for_another_processor(tool, tmp_path, monkeypatch):
    """Python takes the names of modules and of wheels from it."""
    monkeypatch.setattr(tool, "WORK", tmp_path)
    tools = tool.compilers(Path(sys.executable), "aarch64")
    assert "-target aarch64-linux-gnu.2.28" in tools["cc"].read_text()
    settings = tool.cross_settings(Path(sys.executable), "aarch64", tools)
    assert "cpu = 'aarch64'" in Path(settings.pop("machine")).read_text()
    names = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'), "
            "sysconfig.get_platform())",
        ],
        env=settings,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    version = f"{sys.version_info[0]}{sys.version_info[1]}"
    assert names == [f".cpython-{version}-aarch64-linux-gnu.so", "linux-aarch64"]


def test_a_python_that_does_not_start_is_none(tool, tmp_path, monkeypatch):
    for name, text in ("3.12", "exit 1"), ("3.13", "exit 0"):
        path = tmp_path / f"python{name}"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tool.interpreters() == {"3.13": str(tmp_path / "python3.13")}


def test_a_large_or_wrong_wheel_is_refused(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "DIST", tmp_path)
    monkeypatch.setattr(tool, "environment", lambda *_: Path("python"))
    monkeypatch.setattr(tool, "run", lambda *_, **__: None)
    monkeypatch.setattr(tool, "web_address", lambda: None)
    name = f"cyrt-{tool.version()}-cp312-cp312-manylinux_2_24_x86_64.whl"

    def write(requirement, name=name):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(f"cyrt-{tool.version()}.dist-info/METADATA", requirement)

    write(f"Requires-Dist: cyrt-kernels=={tool.version()}\n")
    tool.check()
    monkeypatch.setitem(tool.BUDGETS, "cyrt", 10)
    with pytest.raises(SystemExit, match="more than its budget of 10"):
        tool.check()
    monkeypatch.undo()
    monkeypatch.setattr(tool, "DIST", tmp_path)
    monkeypatch.setattr(tool, "environment", lambda *_: Path("python"))
    monkeypatch.setattr(tool, "run", lambda *_, **__: None)
    monkeypatch.setattr(tool, "web_address", lambda: "https://example.org/cyrt")
    write("Project-URL: Repository, https://example.org/other\n")
    with pytest.raises(SystemExit, match="lacks https://example.org/cyrt, https://example.org/c"):
        tool.check()
    monkeypatch.setattr(tool, "web_address", lambda: None)
    write("Requires-Dist: numpy\n")
    with pytest.raises(SystemExit, match="does not require the kernels of its version"):
        tool.check()
    (tmp_path / name).unlink()
    late = name.replace("2_24", "2_34")
    write(f"Requires-Dist: cyrt-kernels=={tool.version()}\n", late)
    with pytest.raises(SystemExit, match="needs a later glibc than 2.28"):
        tool.check()
