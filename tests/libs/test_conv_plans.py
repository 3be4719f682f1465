"""Plans of convolutions: the fastest one is measured and remembered, and what keeps its code."""

from __future__ import annotations

import gc
import importlib
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from conv_reference import arrays, compare, convolve

import cyrt
from cyrt import nn
from cyrt.builtin import conv_tuning, library_conv
from cyrt.graph import template
from cyrt.jit import cache

WAIT = """extern "C" __global__ void wait(volatile int* go) { while (!*go) {} }"""

# -- the fastest plan ------------------------------------------------------------------------------


@pytest.fixture
def tuning(standin, setting, monkeypatch, folder):
    setting(CYRT_CONV_AUTOTUNE="1")
    library_conv.decide(0, True, 1)
    monkeypatch.setattr(conv_tuning, "SAMPLES", 2)
    monkeypatch.setattr(conv_tuning, "CALLS", 2)
    return cache.current()


SMALL = (2, 7, 7, 4), (8, 3, 3, 4)


def test_the_fastest_plan_is_measured_and_remembered(tuning, standin, rng):
    standin.plans = [(30, 4096), None, (1, 0), (15, 0)]
    x, w, a, b = arrays(rng, "float32", *SMALL)
    compare(nn.conv2d(a, b), convolve(x, w), "float32")
    assert standin.built == [0, 2, 3, 2]
    compare(nn.conv2d(a, b), convolve(x, w), "float32")
    entry = tuning.load(tuning.entries()[0])[0]
    assert (entry["kind"], entry["plan"], entry["cudnn"]) == ("convolution", "eng2", "9.19.0")
    assert entry["problem"]["image"]["shape"] == [2, 4, 7, 7]
    assert entry["microseconds"] > 0
    template.forget()
    standin.built.clear()
    compare(nn.conv2d(a, b), convolve(x, w), "float32")
    assert standin.built == [2]
    # Another library may not have that plan.
    template.forget()
    standin.plans = [(1, 0)]
    compare(nn.conv2d(a, b), convolve(x, w), "float32")
    assert tuning.load(tuning.entries()[0])[0]["plan"] == "eng0"


@pytest.mark.parametrize("how", ["damaged", "a link", "without a plan"])
def test_an_entry_that_cannot_be_used_is_measured_again(tuning, standin, rng, how, tmp_path):
    x, w, a, b = arrays(rng, "float32", *SMALL)
    standin.plans = [(15, 0), (1, 0)]
    nn.conv2d(a, b)
    path = Path(tuning.entries()[0].path)
    if how == "damaged":
        path.write_bytes(path.read_bytes()[:-1] + b" ")
    elif how == "a link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        tuning.put(path.stem, {"kind": "convolution"})
    template.forget()
    standin.built.clear()
    compare(nn.conv2d(a, b), convolve(x, w), "float32")
    assert standin.built == [0, 1, 1]
    assert tuning.load(tuning.entries()[0])[0]["plan"] == "eng1"
    assert not path.is_symlink()


def test_without_a_cache_on_disk_it_is_measured_once_in_a_process(tuning, standin, rng, setting):
    setting(CYRT_CACHE="0")
    _, _, a, b = arrays(rng, "float32", *SMALL)
    standin.plans = [(15, 0), (1, 0)]
    for _ in range(2):
        nn.conv2d(a, b)
    assert standin.built == [0, 1, 1]
    assert tuning.entries() == []


def test_few_plans_are_measured(tuning, standin, rng):
    standin.plans = [(1, 0)] * 40
    _, _, a, b = arrays(rng, "float16", *SMALL)
    nn.conv2d(a, b, stride=2)
    assert len(standin.built) == conv_tuning.MOST_PLANS + 1


def test_no_memory_to_measure_in(tuning, standin, rng, monkeypatch):
    x, w, a, b = arrays(rng, "float32", *SMALL)
    standin.plans = [(15, 0), (1, 0)]
    monkeypatch.setattr(conv_tuning, "nbytes", lambda *_: 1 << 50)
    compare(nn.conv2d(a, b), convolve(x, w), "float32")
    assert standin.built == [0]
    assert tuning.entries() == []


def test_plans_that_cannot_be_measured(tuning, standin, rng, monkeypatch):
    """A workspace that cannot be allocated, and a plan that cannot be built."""
    monkeypatch.setattr(library_conv, "MOST_WORKSPACE", 1 << 50)
    standin.plans = [(1, 1 << 49), (1, 0), (9, 0)]
    standin.unbuilt = {1: "CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED"}
    x, w, a, b = arrays(rng, "float32", *SMALL)
    compare(nn.conv2d(a, b), convolve(x, w), "float32")
    assert standin.built == [0, 2, 2]


# -- code that is compiled for a plan --------------------------------------------------------------


@pytest.fixture
def compiled(standin):
    """The stand-in whose plans have code of their own, on a stream whose plans end with it."""
    standin.compiles = True
    with cyrt.Stream():
        yield standin


@pytest.mark.parametrize("copies", [False, True], ids=["template", "opaque"])
def test_a_call_that_is_recorded_keeps_its_code(compiled, rng, copies):
    """The store has dropped it before it runs, and nothing else knows the plan."""
    compiled.copies = copies
    x, w, a, b = arrays(rng, "float32", *SMALL)
    cyrt.synchronize()
    before = cyrt.current_encoder().stats()["opaque_captures"]
    for padding in (0, 1, 0, 1):
        found = nn.conv2d(a, b, padding=padding)
        template.forget()
        gc.collect()
        compare(found, convolve(x, w, padding=padding), "float32")
    assert cyrt.current_encoder().stats()["opaque_captures"] == before + 4 * copies
    assert compiled.counts["loaded"] == 4


def test_what_a_plan_holds_is_not_dropped(compiled, rng, setting):
    """Each call has a plan, whose template stays in the store until the plan leaves."""
    setting(CYRT_TEMPLATE_CACHE_SIZE="1")
    template.forget()
    x, w, a, b = arrays(rng, "float32", *SMALL)
    with cyrt.Stream() as stream, cyrt.CommandEncoder(stream, graphs=False):
        found = [nn.conv2d(a, b, padding=padding) for padding in (*range(4), *range(4))]
        gc.collect()
        assert template.count_templates() == 4
        assert compiled.counts == {"loaded": 4, "unloaded": 0}
        for padding, each in enumerate(found):
            compare(each, convolve(x, w, padding=padding % 4), "float32")
        library_conv.decide(0, True, 1)  # no plan holds any more
        compare(nn.conv2d(a, b, padding=4), convolve(x, w, padding=4), "float32")
        assert template.count_templates() == 1
        cyrt.synchronize()
        gc.collect()
    assert compiled.counts == {"loaded": 5, "unloaded": 4}


def test_a_tuned_plan_keeps_its_code_and_the_others_end(tuning, compiled, rng):
    compiled.plans = [(9, 0), (1, 0), (5, 0)]
    x, w, a, b = arrays(rng, "float32", *SMALL)
    for _ in range(3):
        compare(nn.conv2d(a, b), convolve(x, w), "float32")
        gc.collect()
        cyrt.synchronize()
    # The winner was built once more, and what was measured has ended.
    assert compiled.counts == {"loaded": 4, "unloaded": 3}


@pytest.mark.parametrize("copies", [False, True], ids=["template", "opaque"])
def test_code_ends_with_the_last_that_may_launch_it(standin, rng, copies):
    standin.compiles, standin.copies = True, copies
    x, w, a, b = arrays(rng, "float32", *SMALL)
    kernel, pinned = cyrt.Kernel(WAIT, "wait"), cyrt.PinnedBuffer(4)
    flag = np.frombuffer(pinned, np.int32)
    flag[0] = 0
    cyrt.synchronize()
    # No plan of a graph holds the kernels.
    with cyrt.Stream() as stream, cyrt.CommandEncoder(stream, graphs=False):
        for _ in range(3):
            nn.conv2d(a, b)
            cyrt.synchronize()
            assert standin.counts == {"loaded": 1, "unloaded": 0}
        kernel[1, 1](pinned)  # the call cannot end before it
        try:
            found = nn.conv2d(a, b)
            template.forget()
            gc.collect()
            assert standin.counts == {"loaded": 1, "unloaded": 0}
        finally:
            flag[0] = 1
        compare(found, convolve(x, w), "float32")
        cyrt.synchronize()
        assert standin.counts["unloaded"] == 1


def test_code_is_not_unloaded_while_the_device_is_busy(standin, rng):
    """Unloading waits for every kernel on the device; whoever drops a plan does not."""
    standin.compiles = True
    _, _, a, b = arrays(rng, "float32", *SMALL)
    kernel, pinned = cyrt.Kernel(WAIT, "wait"), cyrt.PinnedBuffer(4)
    flag = np.frombuffer(pinned, np.int32)
    other, flag[0] = cyrt.Stream(), 0
    with cyrt.Stream() as stream, cyrt.CommandEncoder(stream, graphs=False):
        nn.conv2d(a, b)
        cyrt.synchronize()
    timer = threading.Timer(30, flag.__setitem__, (0, 1))
    timer.start()
    try:
        with other:
            kernel[1, 1](pinned)
            cyrt.commit()
        template.forget()
        gc.collect()
        assert standin.counts == {"loaded": 1, "unloaded": 0}
    finally:
        flag[0] = 1
        timer.cancel()
    cyrt.synchronize()
    other.synchronize()
    assert standin.counts["unloaded"] == 1


# -- the benchmark ---------------------------------------------------------------------------------


def test_the_benchmark_tells_the_plans_part_of_a_first_call(standin, rng, monkeypatch):
    scripts = Path(__file__).resolve().parents[2] / "tools" / "benchmarks"
    monkeypatch.syspath_prepend(scripts)
    for name in ("common", "convolutions"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    script = importlib.import_module("convolutions")
    _, _, a, b = arrays(rng, "float32", *SMALL)
    monkeypatch.setattr(script, "SLOW_CALL", 1e9)
    took, note = script._measure_first_call(lambda _: nn.conv2d(a, b), {})
    for name in ("common", "convolutions"):
        del sys.modules[name]
    assert standin.built == [0] * script.FIRST_CALLS
    part, built = re.fullmatch(r"([\d.]+) of the ([\d,]+) for cuDNN's plan", note).groups()
    assert 0 < int(built.replace(",", "")) < took
    assert float(part) > 1
