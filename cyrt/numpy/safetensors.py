"""Files of the safetensors format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from cyrt.ndarray import Array
from cyrt.numpy.files import host_array
from cyrt.numpy.replacement import replace_file
from cyrt.ops.creation import asarray

__all__ = ["load_safetensors", "save_safetensors"]

# The format's element types, by their names there.
_TYPES = {
    "BOOL": "bool",
    "I8": "int8",
    "I16": "int16",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}
_RESERVED = "__metadata__"  # a name that the format uses itself


def save_safetensors(
    file: Any, arrays: Mapping[str, Any], metadata: Mapping[str, str] | None = None
) -> None:
    """Write named arrays into a file of the safetensors format; the call waits.

    Parameters
    ----------
    file : str or os.PathLike
        An existing file is replaced when the new one is complete.
    arrays : mapping of str to Array
        Arrays of any of cyrt's element types except complex128; NumPy arrays are accepted, too.
    metadata : mapping of str to str, optional
        Texts that are stored in the file.

    Raises
    ------
    TypeError
        The format does not have an element type, or a name or metadata is not a str.
    ImportError
        The package safetensors is not installed.
    """
    name = "save_safetensors"
    library, path = _library(name), _path(file, name)
    if not isinstance(arrays, Mapping):
        raise TypeError(
            f"{name}: arrays: expected a mapping of str to Array, got {type(arrays).__name__}"
        )
    metadata = _texts(metadata, name)
    hosts = {}
    for key, each in arrays.items():
        if not isinstance(key, str):
            raise TypeError(f"{name}: arrays: expected names of type str, got {key!r}")
        if key == _RESERVED:
            raise ValueError(f"{name}: arrays: the name {key!r} is the format's own")
        host = host_array(each, f"{name}: {key!r}")
        if host.dtype.name not in _TYPES.values():
            raise TypeError(f"{name}: {key!r}: the format has no {host.dtype}; astype() casts it")
        hosts[key] = np.asarray(host, order="C")  # the library ignores strides
    with replace_file(path) as partial:
        try:
            library.numpy.save_file(hosts, partial, metadata)
        except library.SafetensorError as error:
            raise OSError(f"{name}: {path} cannot be written: {error}") from error


def load_safetensors(file: Any) -> dict[str, Array]:
    """Read the named arrays of a file of the safetensors format.

    Parameters
    ----------
    file : str or os.PathLike

    Returns
    -------
    dict of str and Array

    Raises
    ------
    ValueError
        The file is damaged, truncated, or in another format.
    TypeError
        cyrt does not have an element type.
    ImportError
        The package safetensors is not installed.
    """
    name = "load_safetensors"
    library = _library(name)
    path = _path(file, name)
    arrays = {}
    try:
        with library.safe_open(path, framework="np") as opened:
            for key in opened.keys():  # noqa: SIM118  it cannot be iterated
                kind = opened.get_slice(key).get_dtype()
                if kind not in _TYPES:
                    raise TypeError(
                        f"{name}: {path}: {key!r} is of element type {kind}, which "
                        "cyrt does not have"
                    )
                arrays[key] = asarray(opened.get_tensor(key))
    except library.SafetensorError as error:
        raise ValueError(
            f"{name}: {path} is damaged, or not a file of the safetensors format: {error}"
        ) from error
    return arrays


def _library(name: str) -> ModuleType:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            f"{name}: the package safetensors is needed: pip install 'cyrt[safetensors]'"
        ) from error
    return safetensors


def _path(file: Any, name: str) -> str:
    if not isinstance(file, (str, bytes, os.PathLike)):
        raise TypeError(f"{name}: file: expected a path, got {type(file).__name__}")
    return os.fsdecode(file)


def _texts(metadata: Mapping[str, str] | None, name: str) -> dict[str, str] | None:
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise TypeError(
            f"{name}: metadata: expected a mapping of str to str, got {type(metadata).__name__}"
        )
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(
                f"{name}: metadata: expected a mapping of str to str, got {key!r}: {value!r}"
            )
    return dict(metadata)
