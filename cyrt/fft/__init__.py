"""Discrete Fourier transforms: the array API standard's functions, and NumPy's for two dimensions.

Transforms have any length, run along any axes of arrays with any strides, and are computed in the
precision of the input. Lengths whose prime factors are 2, 3, 5 and 7 are the fastest.
"""

from cyrt.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from cyrt.fft.transforms import (
    fft,
    fft2,
    fftn,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def __dir__() -> list[str]:
    return list(__all__)
