"""NVTX ranges around commits, by the package nvtx: here one that prints."""

from __future__ import annotations

NVTX = """
def push_range(text, domain):
    print("push", text, domain)

def pop_range(domain):
    print("pop", domain)
"""
PROGRAM = """
import cyrt
kernel = cyrt.Kernel('extern "C" __global__ void inc(int* x) { *x += 1; }', "inc")
x = cyrt.Buffer(4)
x.fill(0)
cyrt.synchronize()
print("ready")
for _ in range(3):
    kernel[1, 1](x)
cyrt.commit()
cyrt.commit()
"""


def test_a_range_around_each_commit(python, tmp_path):
    (tmp_path / "nvtx.py").write_text(NVTX)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{PROGRAM}"
    done = python(program, CYRT_NVTX="1", CYRT_GRAPHS="1")
    assert done.returncode == 0, done.stderr
    ready = done.stdout.splitlines().index("ready")
    assert done.stdout.splitlines()[ready + 1 :] == ["push cyrt: 3 operations cyrt", "pop cyrt"]


def test_none_without_the_setting(python, tmp_path):
    (tmp_path / "nvtx.py").write_text(NVTX)
    done = python(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{PROGRAM}")
    assert done.stdout.splitlines() == ["ready"]


def test_the_missing_package_is_named(python):
    done = python(f"import sys; sys.modules['nvtx'] = None\n{PROGRAM}", CYRT_NVTX="1")
    assert done.returncode == 1
    assert "CYRT_NVTX='1': it needs the package nvtx" in done.stderr
    assert "pip install nvtx" in done.stderr


def test_a_range_ends_where_the_trace_fails(python, tmp_path):
    (tmp_path / "nvtx.py").write_text(NVTX)
    program = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import cyrt
from cyrt.graph import commit

class Trace:
    def begin_commit(self, *arguments):
        raise KeyboardInterrupt

x = cyrt.zeros(100)
cyrt.synchronize()
print("ready")
x += 1
commit.set_tracer(Trace())
try:
    cyrt.commit()
except KeyboardInterrupt:
    print("interrupted")
commit.set_tracer(None)
print(int(x.numpy()[0]))
"""
    done = python(program, CYRT_NVTX="1", CYRT_GRAPHS="1")
    assert done.returncode == 0, done.stderr
    ready = done.stdout.splitlines().index("ready")
    told = ["push cyrt: 1 operations cyrt", "pop cyrt"]
    assert done.stdout.splitlines()[ready + 1 :] == [*told, "interrupted", *told, "1"]
