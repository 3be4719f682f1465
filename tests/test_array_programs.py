"""Random programs of arrays against NumPy."""

import array_programs
import pytest


@pytest.mark.parametrize("seed", range(40))
def test_random_program(seed):
    array_programs.run(seed)


@pytest.mark.parametrize(
    "environment",
    [
        {"CYRT_CHECK": "1"},
        {"CYRT_GRAPHS": "0"},
        {"CYRT_MAX_OPS_PER_GRAPH": "1"},
        {"CYRT_GRAPH_CACHE_SIZE": "1"},
        {"CYRT_PDL": "0"},
    ],
    ids=str,
)
def test_random_programs_otherwise(python, environment):
    done = python(
        f"""
        import sys
        sys.path.insert(0, {array_programs.__file__.rpartition("/")[0]!r})
        import array_programs
        for seed in range(100, 112):
            array_programs.run(seed)
        print("done")
        """,
        **environment,
    )
    assert done.stdout == "done\n", done.stdout + done.stderr
