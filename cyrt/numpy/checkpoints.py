"""Checkpoints: files of nests of arrays, random generators and numbers."""

from __future__ import annotations

import zipfile
from typing import Any, TypeVar

import numpy as np

from cyrt import trees
from cyrt.ndarray import Array
from cyrt.numpy.files import check_file, host_array, read_host_arrays, write_file
from cyrt.numpy.random import Generator
from cyrt.ops.creation import asarray
from cyrt.random.keys import Key

__all__ = ["load_checkpoint", "save_checkpoint"]

_Nest = TypeVar("_Nest")
_LEAVES = (Array, np.ndarray, np.generic, Generator, Key, int, float, complex)  # bool is an int
_MOST_NAMES = 5  # the most names that a message lists


def save_checkpoint(file: Any, nest: Any) -> None:
    """Write a nest of arrays, random generators and numbers into one file; the call waits.

    Parameters
    ----------
    file : str, os.PathLike or file
        The file, as for :func:`cyrt.savez`: ``.npz`` is added to a name that does not end in it. An
        existing file is replaced when the new one is complete.
    nest : nest
        An Array, NumPy array, :class:`cyrt.random.Generator`, :class:`cyrt.random.Key` or number,
        or a dict, list, tuple, named tuple or dataclass of nests. None is kept, too.

    Raises
    ------
    TypeError
        The nest has another object, or an array of an element type that cyrt does not have.
    ValueError
        Two leaves have the same name.

    Notes
    -----
    The file is one of :func:`cyrt.savez`, which :func:`cyrt.load` and NumPy read as a flat dict: a
    leaf's name is the keys, indices and fields that lead to it, joined by dots. A generator is its
    :attr:`~cyrt.random.Generator.state`, a key its bits, as uint64. Code is neither saved nor run.
    The process's sequence of keys, which calls without a key use, is not saved. A program that must
    continue as if it had not been interrupted has to draw with a Generator or with keys.

    Examples
    --------
    >>> import cyrt
    >>> params = {"layers": [cyrt.ones(2), cyrt.zeros(3)]}
    >>> optimizer, rng = cyrt.optim.adam(0.1), cyrt.random.default_rng(7)
    >>> now = {"params": params, "state": optimizer.init(params), "rng": rng, "step": 0}
    >>> cyrt.save_checkpoint("now.npz", now)
    >>> sorted(cyrt.load("now.npz"))[:3]
    ['params.layers.0', 'params.layers.1', 'rng']
    >>> then = cyrt.load_checkpoint("now.npz", like=now)
    >>> then["params"]["layers"][0], then["rng"].state == rng.state
    (Array([1., 1.], dtype=float32), True)
    """
    check_file(file, "save_checkpoint")
    leaves, structure = trees.flatten(nest, _LEAVES, "save_checkpoint: nest")
    hosts = {}
    for name, path, leaf in zip(
        _names(structure, "save_checkpoint: nest"),
        structure.paths("save_checkpoint: nest"),
        leaves,
        strict=True,
    ):
        hosts[name] = _to_host(leaf, path)

    def write(target: Any) -> None:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
            for name, host in hosts.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, host, allow_pickle=False)

    write_file(file, ".npz", write)


def load_checkpoint(file: Any, like: _Nest) -> _Nest:
    """Read a nest that :func:`cyrt.save_checkpoint` wrote.

    Parameters
    ----------
    file : str, os.PathLike or file
        The file.
    like : nest
        A nest of the same structure, whose arrays have the same shapes and types, such as the nest
        with which a program begins. It is not changed.

    Returns
    -------
    nest
        A new nest. Its arrays are on the devices of those of `like`.

    Raises
    ------
    ValueError
        The file is damaged; it lacks a name, or has one that `like` does not have; or an array has
        another shape.
    TypeError
        An array has another element type, or `like` has an object that no checkpoint can have.

    Examples
    --------
    >>> import cyrt
    >>> cyrt.save_checkpoint("w.npz", {"w": cyrt.arange(3), "epoch": 4})
    >>> cyrt.load_checkpoint("w.npz", like={"epoch": 0, "w": cyrt.zeros(3, dtype="int64")})
    {'epoch': 4, 'w': Array([0, 1, 2], dtype=int64)}
    """
    found = read_host_arrays(file, "load_checkpoint")
    leaves, structure = trees.flatten(like, _LEAVES, "load_checkpoint: like")
    names = _names(structure, "load_checkpoint: like")
    if not isinstance(found, dict):
        raise ValueError("load_checkpoint: file: expected a file .npz, got one of a single array")
    for what, some in (
        ("the file lacks", [name for name in names if name not in found]),
        ("`like` lacks", [name for name in found if name not in set(names)]),
    ):
        if some:
            more = f" and {len(some) - _MOST_NAMES} more" if len(some) > _MOST_NAMES else ""
            raise ValueError(
                f"load_checkpoint: {what} {', '.join(map(repr, some[:_MOST_NAMES]))}{more}"
            )
    paths = structure.paths("load_checkpoint: like")
    for name, path, leaf in zip(names, paths, leaves, strict=True):
        _check(found[name], leaf, path)
    nest: _Nest = structure.unflatten(
        [_from_host(found[name], leaf) for name, leaf in zip(names, leaves, strict=True)]
    )
    return nest


def _names(structure: trees.Structure, label: str) -> list[str]:
    """Return the names of leaves. A nest that is one leaf has the name that NumPy gives an array
    without a name."""
    names = [name or "arr_0" for name in structure.names()]
    seen: dict[str, str] = {}
    for name, path in zip(names, structure.paths(label), strict=True):
        if name in seen:
            raise ValueError(f"{seen[name]} and {path} have the same name, {name!r}")
        if "\0" in name:
            raise ValueError(f"{path}: a name in a file has no zero character")
        seen[name] = path
    return names


def _to_host(leaf: Any, path: str) -> np.ndarray:
    if isinstance(leaf, Generator):
        return np.array(leaf.state, np.uint64)
    if isinstance(leaf, Key):
        return np.array(leaf.bits, np.uint64)
    return host_array(leaf, path)


def _check(host: np.ndarray, leaf: Any, path: str) -> None:
    """Raise an error unless an array of a file is what a leaf of the nest may be."""
    if isinstance(leaf, Generator):
        if host.dtype != np.uint64 or host.ndim != 1 or host.size < 2:
            raise TypeError(
                f"{path}: expected the state of a Generator, got {host.dtype} of shape {host.shape}"
            )
        return
    like = np.array(leaf.bits, np.uint64) if isinstance(leaf, Key) else leaf
    shape = np.shape(like)
    if host.shape != shape:
        raise ValueError(f"{path}: expected shape {shape}, got {host.shape}")
    if isinstance(like, (Array, np.ndarray)):
        wanted = like.dtype.numpy if isinstance(like, Array) else like.dtype
    else:
        wanted = np.asarray(like).dtype
    if host.dtype.newbyteorder("=") != wanted:
        raise TypeError(f"{path}: expected {wanted}, got {host.dtype}")


def _from_host(host: np.ndarray, leaf: Any) -> Any:
    if isinstance(leaf, Generator):
        made = Generator(Key(0))
        made.state = host.tolist()
        return made
    if isinstance(leaf, Key):
        return Key(int(host))
    if isinstance(leaf, Array):
        return asarray(host, device=leaf.device)
    return host if isinstance(leaf, np.ndarray) else type(leaf)(host.item())
