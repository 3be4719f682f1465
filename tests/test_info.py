"""``python -m cyrt info``."""

from __future__ import annotations

PROGRAM = "import sys; from cyrt.__main__ import main; sys.exit(main(['info']))"


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
