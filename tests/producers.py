"""A library that offers DLPack's C exchange API, as PyTorch does, over memory of the driver's."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, PYFUNCTYPE, c_int, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from types import SimpleNamespace

import numpy as np

import cyrt

CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Described(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", c_void_p),
        ("kind", c_int32),
        ("index", c_int32),
        ("ndim", c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("offset", c_uint64),
    )


Describe = PYFUNCTYPE(c_int, ctypes.py_object, POINTER(Described))
CurrentStream = PYFUNCTYPE(c_int, c_int, c_int32, POINTER(c_void_p))


class Functions(ctypes.Structure):
    """DLPackExchangeAPI."""


Functions._fields_ = (
    ("major", c_uint32),
    ("minor", c_uint32),
    ("previous", POINTER(Functions)),
    ("allocate", c_void_p),
    ("export", c_void_p),
    ("import_", c_void_p),
    ("describe", Describe),
    ("current_stream", CurrentStream),
)

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (c_void_p, ctypes.c_char_p, c_void_p)
_kept = []


def capsule_of(functions, name=b"dlpack_exchange_api"):
    _kept.append((functions, name))
    return new_capsule(ctypes.addressof(functions), name, None)


class Tensor:
    """An array of the library's: memory of the driver's, freed memory is written at once."""

    stream = 0  # the library's current stream
    asked = 0  # how often it was asked for
    described = 0  # how often a tensor was described
    requires_grad = False
    conjugated = negated = False

    def __init__(self, library, shape=(256,), dtype="f4", strides=None, **fields):
        self.library = library
        self.dtype = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.nbytes = max(1, int(np.prod(shape)) * self.dtype.itemsize)
        address = c_uint64()
        with library:
            library("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(self.nbytes))
        self.address = address.value
        self.shape = shape
        self.kept = [(c_int64 * max(1, len(shape)))(*shape), None]
        if strides is not None:
            self.kept[1] = (c_int64 * len(shape))(*strides)
        self.fields = {
            "data": self.address,
            "kind": 2,
            "ndim": len(shape),
            "code": CODES[self.dtype.kind],
            "bits": 8 * self.dtype.itemsize,
            "lanes": 1,
            "shape": self.kept[0],
            "strides": self.kept[1],
            **fields,
        }
        library.memset(Tensor.stream, self.address, 0, self.nbytes)

    def __del__(self):
        # Its library's next tensor has the memory, and writes it on the current stream.
        self.library.memset(type(self).stream, self.address, 0xFF, self.nbytes)

    def is_conj(self):
        return self.conjugated

    def is_neg(self):
        return self.negated

    def values(self):
        """Read as its own library would: on its current stream, with no call of cyrt's."""
        out = np.empty(self.nbytes // self.dtype.itemsize, self.dtype)
        with self.library:
            self.library(
                "cuMemcpyDtoHAsync_v2",
                c_void_p(out.ctypes.data),
                c_uint64(self.address),
                ctypes.c_size_t(self.nbytes),
                c_void_p(type(self).stream),
            )
            self.library("cuStreamSynchronize", c_void_p(type(self).stream))
        return out


@Describe
def describe(tensor, out):
    cls = type(tensor)
    cls.described += 1
    fields = tensor.fields
    ctypes.memset(out, 0, ctypes.sizeof(Described))
    for name, value in fields.items():
        if name in ("shape", "strides"):
            value = None if value is None else ctypes.cast(value, POINTER(c_int64))
        setattr(out[0], name, value)
    return 0


@CurrentStream
def current_stream(kind, index, out):
    Tensor.asked += 1
    out[0] = Tensor.stream
    return 0


def functions(major=1, minor=3, previous=None, describe=describe, current_stream=current_stream):
    return Functions(
        major,
        minor,
        None if previous is None else ctypes.pointer(previous),
        None,
        ctypes.cast(describe, c_void_p).value if describe else None,
        None,
        describe or Describe(),
        current_stream or CurrentStream(),
    )


Tensor.__dlpack_c_exchange_api__ = capsule_of(functions())


class Pointer:
    """CuPy's MemoryPointer."""

    def __init__(self, address, device):
        self.ptr, self.device_id = address, device


class CupyArray:
    """What is read of CuPy's arrays."""

    read = 0  # how often an array was described

    def __init__(self, tensor, shape=None, strides=None, offset=0, device=0):
        self.tensor, self.dtype = tensor, tensor.dtype
        self.shape = tensor.shape if shape is None else shape
        self.offset, self.device = offset, device
        contiguous = np.empty(self.shape, self.dtype).strides
        self.strides = contiguous if strides is None else strides

    @property
    def data(self):
        CupyArray.read += 1
        return Pointer(self.tensor.address + self.offset, self.device)


CupyArray.__module__, CupyArray.__name__ = "cupy", "ndarray"


class CupyModule:
    """The module cupy."""

    class cuda:
        """Its module cuda."""

        asked = 0

        @staticmethod
        def get_current_stream(device):
            CupyModule.cuda.asked += 1
            return SimpleNamespace(ptr=Tensor.stream)


__all__ = ["CupyArray", "CupyModule", "Tensor", "capsule_of", "cyrt", "functions"]
