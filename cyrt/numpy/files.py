"""Arrays from bytes, and in NumPy's file formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from cyrt.dtypes import dtype as _dtype
from cyrt.error_text import show
from cyrt.ndarray import Array
from cyrt.numpy.random import Generator
from cyrt.numpy.replacement import replace_file
from cyrt.ops.creation import asarray
from cyrt.random.keys import Key
from cyrt.runtime.host_memory import ManagedBuffer, PinnedBuffer
from cyrt.runtime.memory import Buffer

__all__ = ["frombuffer", "load", "loadtxt", "save", "savetxt", "savez", "savez_compressed"]


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Array:
    """Copy host memory to a one-dimensional array.

    Parameters
    ----------
    buffer : bytes or another object with the buffer interface
    dtype : DType
        The element type; ``float`` is float32 here.
    count : int
        The number of elements; -1 is all.
    offset : int
        The first element's offset in bytes.
    """
    return asarray(np.frombuffer(buffer, _dtype(dtype).numpy, count, offset))


def save(file: Any, arr: Any) -> None:
    """Write an array into a file of NumPy's format ``.npy``; the call waits.

    See :func:`numpy.save`.

    Parameters
    ----------
    file : str, os.PathLike or file
        ``.npy`` is added to a name that does not end in it. An existing file is replaced when the
        new one is complete.
    arr : Array or another input of :func:`numpy.asarray`
        An array of any element type of cyrt. The format has no bfloat16, so it is written as
        ``|V2``, bytes without a type, which :func:`cyrt.load` reads as bfloat16.

    Raises
    ------
    TypeError
        cyrt does not have the element type, or the arguments are in another order.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.save("x.npy", cyrt.arange(3))
    >>> cyrt.load("x.npy")
    Array([0, 1, 2], dtype=int64)
    """
    check_file(file, "save")
    host = host_array(arr, "save: arr")
    write_file(file, ".npy", lambda target: np.save(target, host, allow_pickle=False))


def savez(file: Any, /, *args: Any, **kwds: Any) -> None:
    """Write several arrays into one file ``.npz``; the call waits. See :func:`numpy.savez`.

    Parameters
    ----------
    file : str, os.PathLike or file
        The file, as for :func:`cyrt.save`, with ``.npz``.
    *args, **kwds
        The arrays, as for :func:`cyrt.save`. Those without a keyword have the names ``arr_0``,
        ``arr_1`` and so on.
    """
    _write_several(file, "savez", np.savez, args, kwds)


def savez_compressed(file: Any, /, *args: Any, **kwds: Any) -> None:
    """Write several arrays into one compressed file; see :func:`cyrt.savez`.

    Parameters
    ----------
    file, args, kwds
        As for :func:`cyrt.savez`.
    """
    _write_several(file, "savez_compressed", np.savez_compressed, args, kwds)


def savetxt(fname: Any, X: Array, *args: Any, **options: Any) -> None:
    """Write an array of one or two dimensions as text; the call waits. See :func:`numpy.savetxt`.

    Parameters
    ----------
    fname : str, os.PathLike or file
        An existing file is replaced when the new one is complete.
    X : Array
        The array.
    *args, **options
        The other arguments of NumPy's function.
    """
    check_file(fname, "savetxt")
    host = _to_host(X, "savetxt: X")
    write_file(fname, "", lambda target: np.savetxt(target, host, *args, **options))


def _to_host(x: Any, name: str) -> np.ndarray:
    if isinstance(x, Array):
        return x.numpy()
    if isinstance(x, Buffer) and not isinstance(x, (PinnedBuffer, ManagedBuffer)):
        raise TypeError(
            f"{name}: expected an Array, got {type(x).__name__}, which has no element type: "
            "cyrt.asarray(buffer, dtype=...) is an Array of its memory"
        )
    if isinstance(x, (dict, Generator, Key)) or is_dataclass(x):
        raise TypeError(
            f"{name}: expected an array, got {type(x).__name__}; save_checkpoint(file, nest) "
            "writes nests of arrays, generators and keys"
        )
    return np.asarray(x)


def host_array(x: Any, name: str) -> np.ndarray:
    """Convert an object to a NumPy array; raise a TypeError unless cyrt has the element type."""
    host = _to_host(x, name)
    try:
        _dtype(host.dtype)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    return host


def _write_several(
    file: Any, name: str, writer: Callable[..., None], args: tuple[Any, ...], kwds: dict[str, Any]
) -> None:
    check_file(file, name)
    for each in args:
        if isinstance(each, dict):
            raise TypeError(
                f"{name}: expected arrays, got dict; write {name}(file, **arrays), or for a dict "
                "with nests inside save_checkpoint(file, nest)"
            )
    hosts = [host_array(each, f"{name}: arr_{i}") for i, each in enumerate(args)]
    named = {key: host_array(each, f"{name}: {key}") for key, each in kwds.items()}
    write_file(file, ".npz", lambda target: writer(target, *hosts, allow_pickle=False, **named))


def check_file(file: Any, name: str) -> None:
    """Raise TypeError unless a value is a path or an open file."""
    if not isinstance(file, (str, bytes, os.PathLike)) and not hasattr(file, "write"):
        raise TypeError(
            f"{name}: file: expected a name, a path or an open file, got {show(file)}: "
            "the file comes first"
        )


def write_file(file: Any, suffix: str, writer: Callable[[Any], None]) -> None:
    if not isinstance(file, (str, bytes, os.PathLike)):
        writer(file)
        return
    name = os.fsdecode(file)
    with replace_file(name if name.endswith(suffix) else name + suffix) as partial:
        writer(partial)


def load(file: Any) -> Array | dict[str, Array]:
    """Read a file that :func:`cyrt.save`, :func:`cyrt.savez` or NumPy wrote.

    Parameters
    ----------
    file : str, os.PathLike or file

    Returns
    -------
    Array, or dict of str and Array
        For a file ``.npz``, a dict of the arrays by their names. Elements of type ``|V2`` are read
        as bfloat16.

    Raises
    ------
    ValueError
        The file is damaged, truncated, or not in NumPy's format.
    TypeError
        cyrt does not have the element type, such as a structured one; or `file` is neither a name
        nor an open file.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.savez("both.npz", a=cyrt.arange(2), b=cyrt.ones(2))
    >>> cyrt.load("both.npz")["b"]
    Array([1., 1.], dtype=float32)
    """
    found = read_host_arrays(file, "load")
    if isinstance(found, np.ndarray):
        return asarray(found)
    return {name: asarray(host) for name, host in found.items()}


def read_host_arrays(file: Any, function: str) -> np.ndarray | dict[str, np.ndarray]:
    """Return the array of a file ``.npy``, or those of a file ``.npz`` by name, on the host. The
    function's name is for messages."""
    if not isinstance(file, (str, bytes, os.PathLike)) and not hasattr(file, "read"):
        raise TypeError(
            f"{function}: file: expected a name, a path or an open file, got {type(file).__name__}"
        )
    label = f"{function}: {_name(file)}"
    with _reading_errors(label):
        found = np.load(file, allow_pickle=False)
    if isinstance(found, np.ndarray):
        return _checked(found, label)
    arrays = {}
    with found:
        for name in found.files:
            with _reading_errors(label):
                host = found[name]
            arrays[name] = _checked(host, f"{label}, array {name!r}")
    return arrays


@contextmanager
def _reading_errors(label: str) -> Iterator[None]:
    """Raise ValueError for a damaged file, for which NumPy and zipfile raise many types."""
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:
        text = str(error)
        if "Object arrays" in text:
            raise TypeError(
                f"{label}: an array of Python objects, which cyrt's arrays cannot have"
            ) from None
        # NumPy takes every file that it does not know for a pickle, and advises to load that.
        reason = "" if "allow_pickle" in text else f": {text}"
        raise ValueError(f"{label} is damaged, or not a file of NumPy's format{reason}") from error


def _checked(host: Any, label: str) -> np.ndarray:
    if not isinstance(host, np.ndarray):  # NumPy returns an archive's other files as bytes
        raise ValueError(f"{label} is not an array in NumPy's format")
    if host.dtype == "V2":
        host = host.view(_dtype("bfloat16").numpy)
    try:
        _dtype(host.dtype.newbyteorder("="))
    except TypeError as error:
        raise TypeError(f"{label}: {error}") from None
    found: np.ndarray = host
    return found


def _name(file: Any) -> str:
    return os.fsdecode(file) if isinstance(file, (str, bytes, os.PathLike)) else repr(file)


def loadtxt(fname: Any, dtype: Any = float, *args: Any, **options: Any) -> Array:
    """Read the numbers in a text file. See :func:`numpy.loadtxt`.

    Parameters
    ----------
    fname : path, file or sequence of str
    dtype : DType
        ``float`` is float32 here.
    *args, **options
        The other arguments of NumPy's function.

    Returns
    -------
    Array
    """
    target = _dtype(dtype)
    read_as = "float64" if target.name == "bfloat16" else target.name  # NumPy reads no bfloat16
    return asarray(np.loadtxt(fname, read_as, *args, **options), dtype=target)
