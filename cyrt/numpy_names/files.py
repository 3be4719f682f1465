"""Arrays from bytes and in NumPy's files."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyrt.dtypes import dtype as _dtype
from cyrt.ndarray import Array
from cyrt.ops.creation import asarray


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Array:
    """A one-dimensional copy of what lies in the host's memory.

    Parameters
    ----------
    buffer : bytes, or what has the buffer interface
    dtype : DType
        Of its elements; ``float`` is float32 here.
    count : int
        How many; -1: all.
    offset : int
        Where they begin, in bytes.
    """
    return asarray(np.frombuffer(buffer, _dtype(dtype).numpy, count, offset))


def save(file: Any, arr: Any) -> None:
    """Write an array into a file of NumPy's format ``.npy``; it waits. See :func:`numpy.save`."""
    np.save(file, _host(arr))


def savez(file: Any, /, *args: Any, **kwds: Any) -> None:
    """Write several arrays into one file ``.npz``; it waits. See :func:`numpy.savez`."""
    np.savez(file, *map(_host, args), **{name: _host(each) for name, each in kwds.items()})


def savez_compressed(file: Any, /, *args: Any, **kwds: Any) -> None:
    """As :func:`cyrt.savez`, compressed."""
    np.savez_compressed(file, *map(_host, args),
                        **{name: _host(each) for name, each in kwds.items()})


def savetxt(fname: Any, X: Array, *args: Any, **options: Any) -> None:
    """Write an array of one dimension or two as text; it waits. See :func:`numpy.savetxt`."""
    np.savetxt(fname, _host(X), *args, **options)


def loadtxt(fname: Any, dtype: Any = float, *args: Any, **options: Any) -> Array:
    """An array of the numbers in a text file. See :func:`numpy.loadtxt`.

    Parameters
    ----------
    fname : path, file or sequence of str
    dtype : DType
        ``float`` is float32 here.
    *args, **options
        NumPy's.
    """
    return asarray(np.loadtxt(fname, _dtype(dtype).numpy, *args, **options))


def _host(x: Any) -> Any:
    return x.numpy() if isinstance(x, Array) else x


def load(file: Any) -> Array | dict[str, Array]:
    """What :func:`cyrt.save` or :func:`cyrt.savez`, or NumPy, wrote.

    Returns
    -------
    Array, or dict of str and Array
        Of a file ``.npz`` all arrays by name.
    """
    found = np.load(file)
    if isinstance(found, np.ndarray):
        return asarray(found)
    with found:
        return {name: asarray(found[name]) for name in found.files}
