"""Write a minimal family of kernels, which builds and passes: one block a row, forward only.

``python3 tools/new_family.py group_norm`` writes the family's files, with a public function
``cyrt.nn.group_norm(x)`` that subtracts from each row its mean; then change what it computes. With
``--room ops`` the function is ``cyrt.group_norm``.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

FILES = {
    "kernels_cu/params/@name@.h": """\
// Parameters of @name@.cu.
#ifndef CYRT_PARAMS_@NAME@_H
#define CYRT_PARAMS_@NAME@_H
#include "params/begin.h"

// Rows of n elements side by side.
struct CYRT_PARAMETERS @Name@ {
    CYRT_POINTER(const void) x;
    CYRT_POINTER(void) out;
    long long rows, n;
};

#include "params/end.h"
#endif
""",
    "kernels_cu/@name@.cu": """\
// Each row less its mean, one block a row.
//
// CYRT_@NAME@(name, type) makes one kernel, whose parameters are @Name@.
#pragma once

#include "dependency.cuh"
#include "memory.cuh"
#include "reduce.cuh"
#include "params/@name@.h"

namespace cyrt {

template <class T> __device__ inline void @name@(const @Name@& args) {
    using V = compute_of<T>;
    wait_for_dependencies(args);
    launch_dependents();
    for (int64 row = blockIdx.x; row < args.rows; row += gridDim.x) {
        const T* x = global<T>(args.x) + row * args.n;
        T* out = global<T>(args.out) + row * args.n;
        V sum = V(0);
        for (int64 i = threadIdx.x; i < args.n; i += blockDim.x) sum += widen(x[i]);
        sum = block_reduce(sum, [](V a, V b) { return a + b; }, V(0));
        V mean = sum / V(args.n);
        for (int64 i = threadIdx.x; i < args.n; i += blockDim.x) {
            out[i] = cast<T>(widen(x[i]) - mean);
        }
    }
}

}  // namespace cyrt

#define CYRT_@NAME@(NAME, TYPE)                                                   \\
    extern "C" __global__ void NAME(const __grid_constant__ cyrt::@Name@ args) { \\
        cyrt::@name@<TYPE>(args);                                                 \\
    }
""",
    "cyrt/builtin/rows/@name@.py": '''\
"""Rows less their means."""

from __future__ import annotations

from collections.abc import Iterator

from cyrt.builtin.row import Row
from cyrt.dtypes import dtype

TEMPLATES = ("@name@",)
TYPES = ("float16", "bfloat16", "float32", "float64")
# The types in the wheel; the others are compiled at first use.
PREBUILT = frozenset({"float16", "bfloat16", "float32"})


def rows() -> Iterator[Row]:
    for name in TYPES:
        yield Row("@name@", "@name@", (name,), name, "a - mean", name in PREBUILT)


def instance(row: Row) -> str:
    return f"CYRT_@NAME@({row.kernels[0]}, {dtype(row.output).cpp})"
''',
    "cyrt/builtin/@name@.pxd": """\
# Rows less their means: the launch of @name@.cu.

from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

# Record `rows` rows of n contiguous elements, operand 1, less their means, into operand 0.
cdef int record_@name@(Recorder encoder, int dtype, const Operand* operands, long long rows,
                       long long n) except -1
""",
    "cyrt/builtin/@name@.pyx": '''\
"""Rows less their means: the launch of @name@.cu."""

from libc.string cimport memset

from cyrt.builtin.entry cimport entry_of, op_code
from cyrt.builtin.launch cimport (
    MAX_BLOCKS, WARP, WHOLE, Launch, power_of_two, record_launch, set_geometry,
)
from cyrt.builtin.operand cimport Operand
from cyrt.graph.commit cimport Recorder

cdef extern from "params/@name@.h" nogil:
    cdef struct @Name@:
        unsigned long long x, out
        long long rows, n

cdef enum:
    MOST_THREADS = 512

cdef int @NAME@ = op_code("@name@")

# The size in bytes of the parameter of each kernel.
PARAM_BYTES = (sizeof(@Name@),)


cdef int record_@name@(Recorder encoder, int dtype, const Operand* operands, long long rows,
                       long long n) except -1:
    cdef Launch launch
    cdef @Name@ params
    if rows * n == 0:
        return 0
    memset(&params, 0, sizeof(params))
    params.x, params.out = operands[1].address, operands[0].address
    params.rows, params.n = rows, n
    launch.entry = entry_of(encoder.state.ordinal, @NAME@, dtype)
    launch.variant = 0
    set_geometry(&launch.geometry, min(rows, <long long>MAX_BLOCKS),
                 power_of_two(n, WARP, MOST_THREADS), 1)
    return record_launch(encoder, &launch, &params, operands, 2, 1 | WHOLE)
''',
    "cyrt/@room@/@name@.pyi": """\
from cyrt.ndarray import Array

def @name@(x: Array) -> Array: ...
""",
    "cyrt/@room@/@name@.pyx": '''\
"""Rows less their means."""

from libc.string cimport memset

from cyrt.builtin import catalogue
from cyrt.builtin.operand cimport Operand
from cyrt.builtin.@name@ cimport record_@name@
from cyrt.dtypes import DTYPES
from cyrt.graph.recorder cimport encoder_of
from cyrt.ndarray cimport Array, as_contiguous, device_of, new_array, set_operand
from cyrt.ops.arguments import check_array
from cyrt.ops.promotion cimport kinds
from cyrt.runtime.stream cimport current_state


def @name@(x):
    """Subtract from each row, along the last axis, its mean.

    Parameters
    ----------
    x : Array
        An array of a real floating-point type, of one dimension or more.

    Returns
    -------
    Array
        An array of x's shape and type.

    Raises
    ------
    TypeError
        x is no Array, or not of a real floating-point type.
    ValueError
        x is 0-dimensional.

    Notes
    -----
    :func:`layer_norm` begins with it.

    Examples
    --------
    >>> import cyrt
    >>> @module@.@name@(cyrt.asarray([1.0, 3.0]))
    Array([-1.,  1.], dtype=float32)
    """
    cdef Operand[2] operands
    cdef Array array = check_array(x, "@name@: x"), result
    cdef long long n
    if kinds[array.code] != c"f":
        catalogue.row("@name@", DTYPES[array.code].name)        # raises
    if array.ndim_ == 0:
        raise ValueError(
            "@name@: x: expected at least one dimension, got a 0-dimensional array")
    array = as_contiguous(array)
    result = new_array(device_of(array), array.code, array.ndim_, array.dims)
    n = array.dims[array.ndim_ - 1]
    memset(operands, 0, sizeof(operands))
    set_operand(&operands[0], result)
    set_operand(&operands[1], array)
    record_@name@(encoder_of(current_state(device_of(array))), array.code, operands,
                  array.count // n if n else 0, n)
    return result
''',
    "tests/@room@/test_@name@.py": '''\
"""Rows less their means."""

from __future__ import annotations

import numpy as np
import pytest

import cyrt
from @module@ import @name@


def wanted(x):
    x = x.astype(np.float64)
    return x - x.mean(-1, keepdims=True)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1,), (7, 33), (3, 0), (0, 5), (2, 3, 1_000), (3, 4_099)])
def test_results(rng, name, shape):
    x = rng.normal(size=shape).astype(cyrt.dtype(name).numpy)
    found = @name@(cyrt.asarray(x))
    assert (found.shape, found.dtype) == (shape, name)
    tolerance = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-6, "float64": 1e-13}[name]
    if x.size:
        np.testing.assert_allclose(
            found.numpy().astype(np.float64), wanted(x), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_no_number_stays_in_its_row(value):
    x = np.zeros((3, 70), np.float32)
    x[1, 5] = value
    found = @name@(cyrt.asarray(x)).numpy()
    assert np.isnan(found[1]).any()
    assert not found[[0, 2]].any()


def test_views(rng):
    x = rng.normal(size=(40, 30)).astype(np.float32)
    found = @name@(cyrt.asarray(x).T[::2])
    np.testing.assert_allclose(found.numpy(), wanted(x.T[::2]), rtol=2e-6, atol=2e-6)


def test_refusals():
    for no_array in ([1.0], np.ones(3)):
        with pytest.raises(TypeError, match=r"x: expected an Array, got (list|numpy.ndarray)"):
            @name@(no_array)
    with pytest.raises(TypeError, match="has no kernel for int32"):
        @name@(cyrt.ones(3, dtype="int32"))
    with pytest.raises(ValueError, match="x: expected at least one dimension"):
        @name@(cyrt.ones(()))
''',
}


def written(text: str, name: str, room: str) -> str:
    """A text with the family's name in it: as it is, for a type, and for a constant."""
    camel = "".join(part.capitalize() for part in name.split("_"))
    for mark, value in (
        ("@name@", name),
        ("@Name@", camel),
        ("@NAME@", name.upper()),
        ("@room@", room),
        ("@module@", "cyrt.nn" if room == "nn" else "cyrt"),
    ):
        text = text.replace(mark, value)
    return text


def with_name(text: str, name: str, room: str) -> str:
    """The text of the ``__init__`` with the room's public names, with this one in it."""
    imports = list(re.finditer(rf"^from cyrt\.{room}\.(\w+) import ", text, re.MULTILINE))
    at = next((each.start() for each in imports if each[1] > name), imports[-1].start())
    return listed(f"{text[:at]}from cyrt.{room}.{name} import {name}\n{text[at:]}", name)


def listed(text: str, name: str) -> str:
    """A text with the name in its list of public names, which ``format`` sorts."""
    return text.replace("__all__ = [\n", f'__all__ = [\n    "{name}",\n', 1)


def main(arguments: list[str], root: Path = ROOT) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="the family's name, in small letters: group_norm")
    parser.add_argument(
        "--room", choices=["nn", "ops"], default="nn", help="where the function is public"
    )
    options = parser.parse_args(arguments)
    name, room = options.name, options.room
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        parser.error(f"name: expected small letters, digits and underscores, got {name!r}")
    files = {root / written(path, name, room): text for path, text in FILES.items()}
    for path in files:
        # The launches of a family and others are modules of one folder.
        if path.exists():
            parser.error(f"name: {path.relative_to(root)} exists")
    for path, text in files.items():
        path.write_text(written(text, name, room))
    public = root / "cyrt" / ("nn/__init__.py" if room == "nn" else "__init__.py")
    public.write_text(with_name(public.read_text(), name, room))
    for path in [*files, public]:
        print(path.relative_to(root))
    if room == "ops":
        print("put the name on a page of docs/reference, because it is the first of its module")
    print("next: python3 tools/run.py format, which builds, then change what it computes")


if __name__ == "__main__":
    main(sys.argv[1:])
