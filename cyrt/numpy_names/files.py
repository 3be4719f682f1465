"""Arrays from bytes and in NumPy's files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cyrt.dtypes import dtype as _dtype
from cyrt.ndarray import Array
from cyrt.numpy_names.replacing import replacing
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
    """Write an array into a file of NumPy's format ``.npy``; it waits. See :func:`numpy.save`.

    Parameters
    ----------
    file : str, os.PathLike or file
        ``.npy`` is added to a name that does not end so. A file of that name is replaced once the
        new one is whole.
    arr : Array, or what :func:`numpy.asarray` takes
        Of any of cyrt's element types. The format has no bfloat16: it is written as ``|V2``, bytes
        without a type, which :func:`cyrt.load` takes for bfloat16.

    Raises
    ------
    TypeError
        Another element type.
    """
    host = host_array(arr, "save: arr")
    _write(file, ".npy", lambda target: np.save(target, host, allow_pickle=False))


def savez(file: Any, /, *args: Any, **kwds: Any) -> None:
    """Write several arrays into one file ``.npz``; it waits. See :func:`numpy.savez`.

    Parameters
    ----------
    file : str, os.PathLike or file
        As in :func:`cyrt.save`, with ``.npz``.
    *args, **kwds
        What :func:`cyrt.save` takes. Those without a name are ``arr_0``, ``arr_1`` ...
    """
    _write_several(file, "savez", np.savez, args, kwds)


def savez_compressed(file: Any, /, *args: Any, **kwds: Any) -> None:
    """As :func:`cyrt.savez`, compressed."""
    _write_several(file, "savez_compressed", np.savez_compressed, args, kwds)


def savetxt(fname: Any, X: Array, *args: Any, **options: Any) -> None:
    """Write an array of one dimension or two as text; it waits. See :func:`numpy.savetxt`."""
    host = X.numpy() if isinstance(X, Array) else X
    _write(fname, "", lambda target: np.savetxt(target, host, *args, **options))


def host_array(x: Any, name: str) -> np.ndarray:
    """NumPy's array of an Array or of what NumPy takes, of one of cyrt's element types."""
    host = x.numpy() if isinstance(x, Array) else np.asarray(x)
    try:
        _dtype(host.dtype)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    return host


def _write_several(file: Any, name: str, writer: Callable[..., None], args: tuple[Any, ...],
                   kwds: dict[str, Any]) -> None:
    hosts = [host_array(each, f"{name}: arr_{place}") for place, each in enumerate(args)]
    named = {key: host_array(each, f"{name}: {key}") for key, each in kwds.items()}
    _write(file, ".npz", lambda target: writer(target, *hosts, allow_pickle=False, **named))


def _write(file: Any, suffix: str, writer: Callable[[Any], None]) -> None:
    if not isinstance(file, (str, bytes, os.PathLike)):
        writer(file)
        return
    name = os.fsdecode(file)
    with replacing(name if name.endswith(suffix) else name + suffix) as partial:
        writer(partial)


def load(file: Any) -> Array | dict[str, Array]:
    """What :func:`cyrt.save` or :func:`cyrt.savez`, or NumPy, wrote.

    Parameters
    ----------
    file : str, os.PathLike or file

    Returns
    -------
    Array, or dict of str and Array
        Of a file ``.npz`` all arrays by name. Elements of type ``|V2`` are bfloat16.

    Raises
    ------
    ValueError
        The file is damaged, ends too early, or is none of NumPy's.
    TypeError
        An element type that cyrt does not have, such as a structured one.
    """
    with _reading(file):
        found = np.load(file, allow_pickle=False)
    if isinstance(found, np.ndarray):
        return _loaded(found, file, "")
    arrays = {}
    with found:
        for name in found.files:
            with _reading(file):
                host = found[name]
            arrays[name] = _loaded(host, file, f", array {name!r}")
    return arrays


@contextmanager
def _reading(file: Any) -> Iterator[None]:
    """ValueError for a damaged file, on which NumPy and zipfile raise errors of many types."""
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:
        raise ValueError(f"load: {_name(file)} is damaged, or no file of NumPy's format: "
                         f"{error}") from error


def _loaded(host: Any, file: Any, part: str) -> Array:
    if not isinstance(host, np.ndarray):        # NumPy gives the bytes of other files in an archive
        raise ValueError(f"load: {_name(file)}{part}: is no array of NumPy's format")
    if host.dtype == "V2":
        host = host.view(_dtype("bfloat16").numpy)
    try:
        _dtype(host.dtype.newbyteorder("="))
    except TypeError as error:
        raise TypeError(f"load: {_name(file)}{part}: {error}") from None
    return asarray(host)


def _name(file: Any) -> str:
    return os.fsdecode(file) if isinstance(file, (str, bytes, os.PathLike)) else repr(file)


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
    target = _dtype(dtype)
    read_as = "float64" if target.name == "bfloat16" else target.name    # NumPy reads no bfloat16
    return asarray(np.loadtxt(fname, read_as, *args, **options), dtype=target)
