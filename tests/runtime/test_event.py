from __future__ import annotations

import pytest

import cyrt


def test_elapsed_time_is_in_milliseconds():
    spin = cyrt.Kernel(
        'extern "C" __global__ void spin(int* x, int n)'
        "{ int v = 0; for (int i = 0; i < n; ++i) v = v * 3 + i; *x = v; }",
        "spin",
    )
    out = cyrt.Buffer(4)
    start = cyrt.Event().record()
    spin[1, 1](out, 1_000_000)
    end = cyrt.Event().record()
    assert 0.01 < start.elapsed_time(end) < 60_000
    assert start.done
    assert end.done


def test_never_recorded_is_done():
    assert cyrt.Event().done
    cyrt.Event().synchronize()


def test_elapsed_time_wants_timing_and_records():
    recorded = cyrt.Event().record()
    with pytest.raises(ValueError, match="timing=False"):
        recorded.elapsed_time(cyrt.Event(timing=False).record())
    with pytest.raises(ValueError, match="the second event was never recorded"):
        recorded.elapsed_time(cyrt.Event())
    with pytest.raises(TypeError):
        recorded.elapsed_time(None)


def test_record_on_a_stream_and_wait():
    stream = cyrt.Stream()
    event = cyrt.Event(timing=False).record(stream)
    event.wait()
    event.wait(stream)
    event.synchronize()
    assert event.handle
    assert event.device == cyrt.Device(0)
