"""cuFFT by ctypes: discrete Fourier transforms. Only the first call of each kind uses this module.

Values and types are those of cufft.h and cufftXt.h.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from ctypes import byref, c_int, c_longlong, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any

from cyrt.libs.library import DATA_TYPES, CLibrary, Handle, capturing, find_installed, open_path
from cyrt.runtime.ending import release_when_idle

# cufftResult: what a plan is refused with, and a failed allocation.
STATUSES = {
    1: "INVALID_PLAN",
    2: "ALLOC_FAILED",
    3: "INVALID_TYPE",
    4: "INVALID_VALUE",
    5: "INTERNAL_ERROR",
    6: "EXEC_FAILED",
    7: "SETUP_FAILED",
    8: "INVALID_SIZE",
    9: "UNALIGNED_DATA",
    11: "INVALID_DEVICE",
    13: "NO_WORKSPACE",
    14: "NOT_IMPLEMENTED",
    16: "NOT_SUPPORTED",
    17: "MISSING_DEPENDENCY",
    18: "NVRTC_FAILURE",
    19: "NVJITLINK_FAILURE",
}
FORWARD, INVERSE = -1, 1

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cufftCreate": (c_void_p,),
    "cufftDestroy": (c_int,),
    "cufftSetAutoAllocation": (c_int, c_int),
    "cufftSetStream": (c_int, c_void_p),
    "cufftSetWorkArea": (c_int, c_void_p),
    "cufftXtMakePlanMany": (
        c_int,
        c_int,
        c_void_p,
        *(c_void_p, c_longlong, c_longlong, c_int) * 2,
        c_longlong,
        c_void_p,
        c_int,
    ),
    "cufftXtExec": (c_int, c_void_p, c_void_p, c_int),
}


class CuFft(CLibrary):
    """An opened cuFFT. Versions are such as 12500 for 12.5.0."""

    title, file = "cuFFT", "cufft"
    minimum = 11000  # CUDA 12.0's
    signatures = _SIGNATURES
    no_memory = 2
    refusals = (3, 4, 8, 9, 14, 16, 17, 18, 19)

    def read_version(self) -> int:
        found = c_int()
        self.opened.cufftGetVersion(byref(found))
        return found.value

    def describe(self, status: int) -> tuple[str, str]:
        """The name of a status; the library has no text for it."""
        return f"CUFFT_{STATUSES.get(status, status)}", "see cufftResult in cufft.h"


open_library = functools.partial(open_path, CuFft)
find = functools.cache(functools.partial(find_installed, CuFft))


@dataclass(frozen=True)
class Points:
    """The points of transforms in memory.

    Attributes
    ----------
    dtype : str
    sizes : tuple of int
        The points along each axis. Points of the last one are `step` elements apart; the others
        follow without gaps.
    step : int
    distance : int
        Elements from one transform of a batch to the next.
    """

    dtype: str
    sizes: tuple[int, ...]
    step: int
    distance: int


class Transform:
    """Discrete Fourier transforms along one to three axes, without a factor.

    The constructor asks the library for its plan; a call puts the transforms on a stream.

    Parameters
    ----------
    library : CuFft
    ordinal, epoch : int
        The device and the epoch of its context, which is current.
    sizes : tuple of int
        The points of a transform along each axis.
    source, target : Points
        The input and the output. In a transform between real numbers and half a spectrum, the last
        axis of the spectrum has ``sizes[-1] // 2 + 1`` points.
    batch : int
    inverse : bool
        The sign of the exponent of a transform of complex numbers.

    Attributes
    ----------
    workspace : int
        Bytes of temporary memory of a call.
    reads_own_memory : bool
        The plan has tables of its own on the device, which calls only read.

    Raises
    ------
    Unsupported
        The library does not provide the transform.
    CudaError
        The library failed otherwise; the message has the sizes and types.
    """

    reads_own_memory = True

    def __init__(
        self,
        library: CuFft,
        ordinal: int,
        epoch: int,
        sizes: Sequence[int],
        source: Points,
        target: Points,
        batch: int,
        inverse: bool,
    ) -> None:
        self._library, self._device = library, (ordinal, epoch)
        self._direction = INVERSE if inverse else FORWARD
        self._used: tuple[int, Sequence[int]] | None = None  # by a call in progress
        self.text = f"{source.dtype} to {target.dtype}, {batch} x {tuple(sizes)} points"
        plan, workspace = c_int(), c_size_t()
        self._call("cufftCreate", byref(plan))
        self._plan = Handle(plan, self._library.functions["cufftDestroy"])
        self._call("cufftSetAutoAllocation", plan, 0)
        axes = c_longlong * len(sizes)
        described: list[Any] = []
        for points in (source, target):
            described += [axes(*points.sizes), points.step, points.distance]
            described.append(DATA_TYPES[points.dtype])
        spectrum = source if source.dtype.startswith("complex") else target
        with capturing:  # the library waits for the whole context
            self._call(
                "cufftXtMakePlanMany",
                plan,
                len(sizes),
                axes(*sizes),
                *described,
                batch,
                byref(workspace),
                DATA_TYPES[spectrum.dtype],
            )
        self.workspace = workspace.value

    def _call(self, name: str, *arguments: Any) -> None:
        self._library.call(name, *arguments, detail=self.text)

    def __call__(self, stream: int, addresses: Sequence[int]) -> None:
        """Put the transforms on a stream.

        The addresses are those of the output, of the input, and of the workspace if there is one.
        """
        target, source, *workspace = addresses
        # A signal handler may call the same plan in the middle of this call.
        interrupted, self._used = self._used, (stream, workspace)
        try:
            self._use(stream, workspace)
            self._call("cufftXtExec", self._plan.value, source, target, self._direction)
        finally:
            self._used = interrupted
            if interrupted:
                self._use(*interrupted)

    def _use(self, stream: int, workspace: Sequence[int]) -> None:
        self._call("cufftSetStream", self._plan.value, stream)
        for address in workspace:
            self._call("cufftSetWorkArea", self._plan.value, address)

    def __del__(self, release: Any = release_when_idle) -> None:  # at exit the module is empty
        # The plan's tables and code are used by launched work, and their end waits for the device.
        if hasattr(self, "_plan"):
            release(*self._device, self._plan)
