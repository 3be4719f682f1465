"""The scripts of tools/benchmarks, at small sizes."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

import pytest

import cyrt

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "tools" / "benchmarks"
CASES = {
    "attention": ("small with rope", "cyrt: 2 × 3 heads over 3, 49 of 50 × 32 bfloat16"),
    "convolutions": ("weight_vjp", "cyrt: 2 × 9² × 16, 24 of 3², float16"),
    "copies": ("0.125 MB to the host", "cyrt: in a row"),
    "decode": ("tiny, a token", "cyrt: bfloat16, 32 tokens before"),
    "differentiation": ("logistic regression, 20 × 5", "cyrt: a step, by the tape"),
    "elementwise": ("add", "float32, 1 MB moved"),
    "fft": ("rfft2 32 × 32", "cyrt: complex64"),
    "fusion": ("heat by slices × 20", "cyrt, fused"),
    "indexing": ("take_along_axis, 256 rows of 1,024 float32", "cyrt: 4 MB moved"),
    "interop": ("kernel, cyrt's arrays", "inside batch()"),
    "large_fusion": ("16 additions, 16,384 floats", "cyrt, fused"),
    "linalg": ("svd 3 × 4²", "cyrt: float32"),
    "norms": ("layer_norm_vjp", "cyrt: 96 × 128 bfloat16"),
    "products": ("16 rows by matrix", "cyrt: bfloat16, (16, 96) by (96, 96)"),
    "random_numbers": ("truncated normal float32", "cyrt: 16,384"),
    "reductions": ("logsumexp by columns", "cyrt: 96 × 128 bfloat16"),
    "replay": ("k-means", "an operation"),
    "scattering": ("bincount of 39,062 of 1,000, float64", "cyrt: 1 MB moved"),
    "sorting": ("select", "cyrt: float32, 16,384, 5 % true"),
    "training": ("perceptron 64 × (16, 24, 24, 10), Adam", "cyrt, gradients by hand"),
}


def test_every_script_is_run():
    # tests/bench runs the first two.
    others = {"peers", "settling", "common"}
    assert {path.stem for path in SCRIPTS.glob("*.py")} == {*CASES, *others}


@pytest.mark.parametrize("name", CASES)
def test_results_are_checked(fork_server, name, tmp_path):
    file = tmp_path / "rows.json"
    done = fork_server.run([SCRIPTS / f"{name}.py", "--small", "--json", file], env=os.environ)
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text(encoding="utf-8"))
    assert CASES[name] in [(row["case"], row["what"]) for row in rows]
    untimed = [row for row in rows if row["device"] is None and row["host"] is None]
    assert done.stdout.count("checked, not timed") == len(untimed)
    assert len(rows) - len(untimed) == (name == "reductions")


@pytest.mark.parametrize("name", CASES)
def test_help(fork_server, name):
    done = fork_server.run([SCRIPTS / f"{name}.py", "--help"], env={**os.environ, "COLUMNS": "100"})
    assert done.returncode == 0, done.stderr
    assert "--small" in done.stdout


def test_each_goal_of_replay_has_a_row(script):
    module, common = script("replay"), script("common")
    rows = module.measure(common.Session(small=True))
    assert set(module.GOALS) <= {row.case for row in rows}


@pytest.mark.usefixtures("pooled", "batched", "fresh_stream")
def test_a_surprise_ends_a_replay(script, monkeypatch, setting):
    """It is measured between rounds that are replayed, which the function checks."""
    module, common = script("replay"), script("common")
    session = common.Session(small=False)
    monkeypatch.setattr(module, "SURPRISES", 4)
    assert isinstance(module.measure_surprise(session), float)
    setting(CYRT_REPLAY="0")
    with cyrt.Stream(), pytest.raises(AssertionError):
        module.measure_surprise(session)


@pytest.fixture
def script(monkeypatch):
    """Imports a script by its name."""
    monkeypatch.syspath_prepend(SCRIPTS)
    before = set(sys.modules)
    yield importlib.import_module
    for name in ("common", *CASES):
        if name not in before:
            sys.modules.pop(name, None)


# A function that is wrong in one element.
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("elementwise", "exp"),
        ("indexing", "take"),
        ("products", "vecdot"),
        ("reductions", "max"),
        ("sorting", "argsort"),
    ],
)
def test_a_wrong_result_has_no_row(name, function, script, monkeypatch):
    right = getattr(cyrt, function)

    def wrong(*args, **kwargs):
        result = right(*args, **kwargs)
        result.flat[-1] = result.flat[-1] + 1
        return result

    module, common = script(name), script("common")
    monkeypatch.setattr(cyrt, function, wrong)
    with pytest.raises(AssertionError, match="Mismatched elements|Items are not equal"):
        list(module.measure(common.Session(small=True)))


def test_wrong_moments_have_no_row(script, monkeypatch):
    from cyrt import random

    module, common = script("random_numbers"), script("common")
    normal = random.normal
    monkeypatch.setattr(random, "normal", lambda **options: normal(**options) + 0.1)
    with pytest.raises(AssertionError, match=r"normal float32: expected mean 0\.0000"):
        list(module.measure(common.Session(small=True)))


@pytest.mark.parametrize("which", [0, 1, 2])
def test_wrong_gradients_have_no_row(which, script, monkeypatch):
    from cyrt import nn

    module, common = script("norms"), script("common")
    right = nn.layer_norm_vjp

    def wrong(*args, **kwargs):
        results = right(*args, **kwargs)
        results[which].flat[-1] = results[which].flat[-1] + 1
        return results

    monkeypatch.setattr(nn, "layer_norm_vjp", wrong)
    with pytest.raises(AssertionError, match="Mismatched elements"):
        list(module.measure(common.Session(small=True)))


@pytest.mark.parametrize("function", ["conv2d", "conv_input_vjp", "conv_weight_vjp"])
def test_wrong_convolutions_have_no_row(function, script, monkeypatch):
    from cyrt import nn

    module, common = script("convolutions"), script("common")
    right = getattr(nn, function)

    def wrong(*args, **kwargs):
        result = right(*args, **kwargs)
        result.flat[-1] = result.flat[-1] + 1
        return result

    monkeypatch.setattr(nn, function, wrong)
    with pytest.raises(AssertionError, match="Mismatched elements"):
        list(module.measure(common.Session(small=True)))
