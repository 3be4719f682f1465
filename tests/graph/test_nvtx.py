"""NVTX ranges around commits, by the package nvtx: here one that prints."""

from __future__ import annotations

from itertools import chain

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


def test_a_range_around_each_batch_that_is_replayed(python, tmp_path, pooled):
    """It tells of as many operations as without replay."""
    (tmp_path / "nvtx.py").write_text(NVTX)
    program = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import cyrt
kernel = cyrt.Kernel('extern "C" __global__ void inc(float* x) {{ *x += 1; }}', "inc")
with cyrt.Stream():
    encoder = cyrt.current_encoder()
    x, y = cyrt.zeros(64), cyrt.ones(64)
    cyrt.synchronize()
    print("ready")
    for i in range(12):
        for _ in range(2):
            kernel[1, 1](x)
            x += y
        if i == 9:
            x -= 1
        cyrt.commit()
    replayed = encoder.stats()["replayed"]
    print("values", x.numpy()[:2])
print(replayed, file=sys.stderr)
"""
    found = [
        python(program, CYRT_NVTX="1", CYRT_GRAPHS="1", CYRT_LAUNCH_BLOCKING="0", CYRT_REPLAY=mode)
        for mode in ("0", "1", "verify")
    ]
    assert [each.returncode for each in found] == [0] * 3, [each.stderr for each in found]
    replayed = [int(each.stderr.splitlines()[-1]) for each in found]
    assert replayed[0] == 0
    assert replayed[1] == replayed[2] >= 4 * 7
    lines = found[0].stdout.splitlines()
    counts = [4] * 9 + [5] + [4] * 2
    ranges = [(f"push cyrt: {count} operations cyrt", "pop cyrt") for count in counts]
    assert lines[lines.index("ready") + 1 : -1] == [*chain(*ranges)]
    assert lines[-1] == "values [47. 23.]"
    assert [each.stdout for each in found[1:]] == [found[0].stdout] * 2


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
