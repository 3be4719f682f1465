"""``cyrt.profile(file)``: what the file says of commits, launches, the GPU and memory."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import shutil
import subprocess
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import cyrt
from cyrt import tracing
from cyrt.tracing import cupti

HOST, DEVICE = 1, 2

pytestmark = pytest.mark.usefixtures("batched")


def events_of(file, phase="X", **equal):
    found = json.loads(file.read_text())["traceEvents"]
    return [
        each
        for each in found
        if each["ph"] == phase and all(each[key] == value for key, value in equal.items())
    ]


def end(event):
    return round(event["ts"] + event["dur"], 3)  # whole nanoseconds, as they are written


def test_a_batch_is_recorded_committed_launched_and_run(tmp_path):
    file = tmp_path / "out.json"
    x = cyrt.ones(1000)
    # Programs that ran on another stream may have a round that ends batches in this one.
    with cyrt.Stream():
        y = x + 1  # before the profile
        with cyrt.profile(file):
            for _ in range(3):
                y = y * 2 + x
            cyrt.commit()
    (record,) = events_of(file, name="record")
    (commit,) = events_of(file, name="commit")
    (launch,) = events_of(file, name="launch")
    (ran,) = events_of(file, pid=DEVICE, name="6 operations")
    assert record["pid"] == commit["pid"] == HOST
    assert 0 <= record["ts"] < end(record) == commit["ts"]
    assert commit["ts"] <= launch["ts"] <= end(launch) <= end(commit)
    assert ran["dur"] > 0
    other = json.loads(file.read_text())["otherData"]
    near = 100 + other["clock_uncertainty_us"]  # other processes may use the GPU, too
    assert launch["ts"] - near < ran["ts"] < launch["ts"] + 1e6  # µs; one clock
    assert commit["args"]["operations"] == 6
    assert "× 3" in commit["args"]["what"]
    assert commit["args"]["reason"] == "commit()"
    assert commit["args"]["at"] == f"{__file__}:{_line('cyrt.commit()', 1)}"
    assert commit["args"]["thread"] == "MainThread"


def _line(text, occurrence):
    lines = Path(__file__).read_text().splitlines()
    return [i for i, line in enumerate(lines, 1) if line.strip() == text][occurrence - 1]


COPY = "a copy between host and device, or a fill, comes"
WAIT = "the host waits for results"
REASONS = {
    "numpy": (COPY, lambda x: x.numpy()),
    "copy_from": (COPY, lambda x: x.copy_from(np.zeros(1000, np.float32))),
    "synchronize": (WAIT, lambda x: cyrt.synchronize()),
    "the block's end": (WAIT, lambda x: None),
    "commit": ("commit()", lambda x: cyrt.commit()),
    "event": ("an event is recorded", lambda x: cyrt.Event().record()),
    "handle": ("the stream's handle is handed out", lambda x: cyrt.current_encoder().stream.handle),
    "ptr": ("another stream or library uses the memory", lambda x: x.buffer.ptr),
}


@pytest.mark.parametrize("way", REASONS)
def test_the_reason_for_a_commit(way, tmp_path):
    file = tmp_path / "out.json"
    reason, ask = REASONS[way]
    x = cyrt.ones(1000)
    with cyrt.profile(str(file)):
        x += 1
        ask(x)
    assert events_of(file, name="commit")[0]["args"]["reason"] == reason


def test_the_reason_for_a_commit_that_orders_other_streams(tmp_path):
    """First it launches what other streams have recorded for the same memory."""
    file = tmp_path / "out.json"
    x = cyrt.ones(1000)
    assert x.buffer.ptr
    with cyrt.profile(file), cyrt.batch():
        x += 1
    (commit,) = events_of(file, name="commit")
    assert commit["args"]["reason"] == "the batch() block ends"


def test_a_commit_inside_another_has_a_reason_of_its_own(tmp_path, replaced):
    """Other threads, handlers and finalizers may commit while a commit waits."""
    file = tmp_path / "out.json"
    x, y, other, inside = cyrt.ones(10), cyrt.ones(10), cyrt.Stream(), []
    cyrt.synchronize()

    def create(original, event, flags):
        if not inside:
            inside.append(True)
            with other:
                cyrt.add(y, 1, out=y)
        return original(event, flags)

    with cyrt.profile(file), cyrt.CommandEncoder() as encoder, encoder.stream:
        x *= 2
        x += 1
        replaced("cuEventCreate", [ctypes.c_void_p, ctypes.c_uint], create)
        encoder.commit()  # creates the event after its first batch
    found = [each["args"] for each in events_of(file, name="commit")]
    assert {each["operations"]: each["reason"] for each in found} == {
        1: "the stream's block ends",
        2: "commit()",
    }


def test_the_reason_at_a_limit(tmp_path):
    file = tmp_path / "out.json"
    with cyrt.CommandEncoder(max_ops=4) as encoder, encoder.stream:
        x = cyrt.ones(10)
        with cyrt.profile(file):
            for _ in range(6):
                x += 1
    first, *_ = events_of(file, name="commit")
    assert first["args"]["reason"] == "the batch has the most operations"
    assert first["args"]["operations"] == 4


def test_a_batch_that_repeats_says_so(tmp_path):
    file = tmp_path / "out.json"
    x = cyrt.ones(10)
    with cyrt.profile(file):
        for _ in range(4):
            x += 1
            x *= 2
            cyrt.commit()
    commits = events_of(file, name="commit")
    assert [each["args"]["hits"] for each in commits[1:]] == [1, 1, 1]
    assert len(events_of(file, pid=DEVICE, name="2 operations")) == 4


@pytest.mark.parametrize("mode", ["1", "verify"])
def test_batches_that_are_replayed(mode, setting, tmp_path, pooled):
    """The file tells of them what it tells of the same batches when they are recorded."""

    def told(mode, file):
        setting(CYRT_REPLAY=mode, CYRT_FUSE="0")
        cyrt.synchronize()
        cyrt.trim_memory()
        with cyrt.Stream():
            encoder = cyrt.current_encoder()
            x, y = cyrt.zeros(100), cyrt.ones(100)

            def run(rounds):
                for _ in range(rounds):
                    for _ in range(3):
                        x.__iadd__(y)
                        (x * 2).sum()
                    cyrt.commit()

            run(8)
            before = encoder.stats()
            with cyrt.profile(file):
                run(5)
                x.__imul__(0.5)  # behind five batches that are replayed
                cyrt.commit()
                run(1)
            after = encoder.stats()
            assert (x.numpy() == (3 * 13) / 2 + 3).all()
        commits = [
            {key: each["args"][key] for key in ("operations", "what", "reason", "hits")}
            for each in events_of(file, name="commit")
        ]
        for name in ("record", "launch"):
            assert len(events_of(file, name=name)) == len(commits)
        for record, commit, launch in zip(
            *(events_of(file, name=name) for name in ("record", "commit", "launch")), strict=True
        ):
            assert record["ts"] <= end(record) == commit["ts"] <= launch["ts"] <= end(launch)
            assert end(launch) <= end(commit)
        ran = [each["name"] for each in events_of(file, pid=DEVICE)]
        return commits, ran, after["replayed"] - before["replayed"]

    told("0", tmp_path / "first.json")  # it compiles the kernels
    commits, ran, replayed = told("0", tmp_path / "recorded.json")
    assert replayed == 0
    assert [each["operations"] for each in commits] == [9] * 5 + [1, 9]
    found = told(mode, tmp_path / "replayed.json")
    assert found[:2] == (commits, ran)
    assert found[2] >= 5 * 9


def test_memory_in_use_is_a_curve(tmp_path, pooled):
    file = tmp_path / "out.json"
    cyrt.synchronize()
    gc.collect()  # other tests' memory is freed now, and not after the trace
    with cyrt.profile(file):
        a = cyrt.ones(1000)
        cyrt.commit()
        b = cyrt.ones(1 << 20)
        cyrt.commit()
    values = [each["args"]["bytes"] for each in events_of(file, "C")]
    assert values[1] - values[0] >= 4 << 20
    assert values[1] == cyrt.memory_stats()["in_use"]
    del a, b


def test_streams_and_threads_have_rows(tmp_path):
    file = tmp_path / "out.json"

    def work():
        (cyrt.ones(10) + 1).numpy()

    side = cyrt.Stream()
    with cyrt.profile(file):
        work()
        with side:
            work()
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
    commits = events_of(file, name="commit")
    rows = {each["tid"] for each in commits}
    assert len(rows) == 3
    assert {each["args"]["thread"] for each in commits} == {"MainThread", "worker"}
    named = {each["tid"] for each in events_of(file, "M", name="thread_name", pid=HOST)}
    assert named == rows
    processes = [each["args"]["name"] for each in events_of(file, "M", name="process_name")]
    assert processes == ["host", f"GPU 0: {cyrt.Device().name}"]


def test_spans_of_a_row_do_not_overlap(tmp_path):
    file = tmp_path / "out.json"
    x = cyrt.ones(1000)
    with cyrt.profile(file):
        for _ in range(300):
            x = x * 1.5 - 1
        x.numpy()
    ran = sorted(
        (each for each in events_of(file, pid=DEVICE) if each["tid"] < 1000),
        key=lambda each: each["ts"],
    )
    assert sum(each["args"]["operations"] for each in ran) == 600
    for one, other in pairwise(ran):
        assert end(one) <= other["ts"] + 0.1  # µs: the events' own precision


def test_nothing_is_traced_outside(tmp_path):
    with cyrt.profile(tmp_path / "a.json"):
        pass
    (cyrt.ones(10) + 1).numpy()
    assert events_of(tmp_path / "a.json") == []
    with cyrt.profile(tmp_path / "b.json"):
        (cyrt.ones(10) + 1).numpy()
    assert events_of(tmp_path / "b.json", name="commit")


def test_a_trace_of_a_program_that_fails(tmp_path):
    file = tmp_path / "out.json"

    def fail():
        with cyrt.profile(file):
            cyrt.ones(10)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert events_of(file, name="commit")
    with cyrt.profile(file):  # the next one is possible
        pass


def test_bad_input(tmp_path):
    with pytest.raises(FileNotFoundError), cyrt.profile(tmp_path / "no" / "out.json"):
        pass
    with (
        cyrt.profile(tmp_path / "a.json"),
        pytest.raises(RuntimeError, match=r"written already, to .*a\.json"),
        cyrt.profile(tmp_path / "b.json"),
    ):
        pass
    assert not (tmp_path / "b.json").exists()
    with pytest.raises(TypeError, match="Array"):
        cyrt.profile(cyrt.eye(3))


@pytest.fixture
def standin(tmp_path, monkeypatch):
    """CUPTI's stand-in, for a device that pretends to be a GPU."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler for the stand-in of CUPTI")
    library = tmp_path / "libcupti_standin.so"
    source = Path(__file__).with_name("cupti_standin.c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source], check=True)

    class Found:
        abs_path = os.fspath(library)

    monkeypatch.setattr(cupti.pathfinder, "load_nvidia_dynamic_lib", lambda name: Found)
    monkeypatch.setattr(tracing.table, "driver_info", lambda: ("libcuda.so.1", False, 13000))
    tracing._collector.cache_clear()
    yield tracing._collector().library
    tracing._collector.cache_clear()


def test_operations_by_cupti(standin, tmp_path):
    file = tmp_path / "out.json"
    with cyrt.profile(file):
        cyrt.synchronize()
    ran = [each for each in events_of(file, pid=DEVICE) if each["tid"] >= 1000]
    assert [each["name"] for each in ran] == ["axpy<float>", "plain", "plain", "copy"]
    assert [each["tid"] for each in ran] == [1000, 1001, 1002, 1000]
    named = events_of(file, "M", name="thread_name", pid=DEVICE)
    of_stream, of_graphs = "operations of CUPTI's stream 7", "operations of graphs"
    assert [each["args"]["name"] for each in named] == [of_graphs, of_graphs, of_stream]
    assert [round(each["dur"], 3) for each in ran] == [4, 2, 1, 1]
    assert all(-1000 < each["ts"] < 1e8 for each in ran)  # times of the trace's clock
    assert ran[0]["args"] == {"grid": [4, 1, 1], "block": [256, 1, 1]}
    assert ran[3]["args"] == {"bytes": 4096}
    with cyrt.profile(file):  # once more
        pass
    assert len(events_of(file, pid=DEVICE)) == 4


def test_cupti_refuses(standin, tmp_path):
    standin.standin_refuse(39)
    with cyrt.profile(tmp_path / "out.json"):
        (cyrt.ones(10) + 1).numpy()
    note = json.loads((tmp_path / "out.json").read_text())["otherData"]["note"]
    assert "MULTIPLE_SUBSCRIBERS" in note
    assert events_of(tmp_path / "out.json", name="commit")


def test_cupti_is_turned_off(standin, setting, tmp_path):
    setting(CYRT_CUPTI="0")
    with cyrt.profile(tmp_path / "out.json"):
        pass
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["otherData"]["note"].startswith("CYRT_CUPTI=0")
    assert not [each for each in document["traceEvents"] if each["ph"] == "X"]


def test_the_note_of_the_emulated_device(only_emulated, tmp_path):
    with cyrt.profile(tmp_path / "out.json"):
        pass
    note = json.loads((tmp_path / "out.json").read_text())["otherData"]["note"]
    assert note == "the emulated device: its times are the host's"


@pytest.mark.gpu
def test_operations_of_a_gpu(tmp_path):
    """Each kernel of a batch, within the batch's span; skipped where CUPTI is missing."""
    file = tmp_path / "out.json"
    x = cyrt.ones(1 << 22)
    with cyrt.profile(file):
        for _ in range(4):
            x = x * 1.5 - 1
            cyrt.commit()
    other = json.loads(file.read_text())["otherData"]
    if other["note"]:
        pytest.skip(other["note"])
    near = 100 + other["clock_uncertainty_us"]  # other processes may use the GPU, too
    ran = [each for each in events_of(file, pid=DEVICE) if each["tid"] >= 1000]
    assert len(ran) == 8
    named = events_of(file, "M", name="thread_name", pid=DEVICE)
    rows = {each["args"]["name"] for each in named}
    assert {"batches of stream 1", "operations of graphs"} <= rows
    batches = [each for each in events_of(file, pid=DEVICE) if each["tid"] < 1000]
    first, last = min(each["ts"] for each in batches), max(map(end, batches))
    assert all(first - near < each["ts"] and end(each) < last + near for each in ran)
