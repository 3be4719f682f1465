"""The logger ``cyrt``."""

from __future__ import annotations

import logging
import os

import pytest

from cyrt.jit.cache import Cache
from cyrt.jit.compiler import compile


@pytest.fixture
def said(caplog):
    """Return the messages of a level, which are cleared."""
    caplog.set_level(logging.DEBUG, "cyrt")

    def read(level):
        found = [each.getMessage() for each in caplog.records if each.levelname == level]
        caplog.clear()
        return found

    return read


def test_it_is_quiet_by_default(python):
    done = python(
        "import cyrt\ncyrt.Kernel('__global__ void quiet() {}', 'quiet')[1, 1]()\n",
        CYRT_DEVICE="emulated",
        CYRT_CACHE="0",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_compilations(folder, said):
    source = "__global__ void logged() {}"
    compile(source, arch="sm_90", filename="logged.cu")
    (line,) = [each for each in said("INFO") if each.startswith("compiled")]
    assert line.startswith("compiled logged.cu for sm_90 in ")
    compile(source, arch="sm_90", filename="logged.cu")
    (line,) = said("DEBUG")
    assert line.startswith("logged.cu for sm_90 was compiled before: ")


def test_evictions_on_disk(folder, said):
    store = Cache(folder, 3000)
    for i in range(3):
        store.put(f"{i:064x}", {}, bytes(1000))
        os.utime(os.path.join(store.folder, f"{i:064x}.entry"), (i, i))
    assert said("INFO") == [f"the cache of kernels is above its limit: {0:064x} is removed"]


def test_the_emulated_device_in_the_place_of_a_gpu(python):
    done = python(
        """
        import logging, warnings
        warnings.simplefilter("ignore")
        logging.basicConfig(format="%(levelname)s %(name)s %(message)s")
        import cyrt
        cyrt.ones(1)
        """,
        CYRT_DEVICE="auto",
        CUDA_VISIBLE_DEVICES="",
    )
    assert done.stderr.startswith("WARNING cyrt the emulated device is used: "), done.stderr


def test_evictions_of_graphs(python):
    """A handler that raises does not keep a batch from running."""
    done = python(
        """
        import logging
        import cyrt

        class Handler(logging.Handler):
            def emit(self, record):
                print(record.levelname, record.getMessage())
                raise RuntimeError("the handler's own")

        logging.getLogger("cyrt").addHandler(Handler())
        logging.getLogger("cyrt").setLevel(logging.DEBUG)
        for n in range(1, 5):
            x = cyrt.zeros(4)
            for _ in range(n):
                x = x + 1
            cyrt.commit()
            assert x.numpy().tolist() == [n] * 4
        """,
        CYRT_DEVICE="emulated",
        CYRT_GRAPH_CACHE_SIZE="2",
        CYRT_GRAPHS="1",
    )
    assert done.returncode == 0, done.stderr
    assert "DEBUG 1 graphs were evicted, 2 are kept" in done.stdout.splitlines(), done.stdout
    assert "the handler's own" in done.stderr
