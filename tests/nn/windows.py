"""The reference of sliding windows, in float64: which element each tap of each window is."""

from __future__ import annotations

import numpy as np

OUTPUTS, TAPS = "pqr", "xyz"  # letters of einsum


def numbers_for(value, ndim):
    """One number for each dimension."""
    return [value] * ndim if np.isscalar(value) else list(value)


def pairs_for(padding, ndim):
    return [(p, p) if np.isscalar(p) else tuple(p) for p in numbers_for(padding, ndim)]


def indices(size, taps, stride, pad, step, spacing, flip):
    """For each output and tap, the index of the element; `size` where there is a zero."""
    room = max(0, (size - 1) * spacing + 1) + sum(pad) - (taps - 1) * step - 1
    found = np.full((room // stride + 1, taps), size)
    for output, tap in np.ndindex(found.shape):
        index, rest = divmod(output * stride + tap * step - pad[0], spacing)
        if rest == 0 and 0 <= index < size:
            found[output, tap] = index
    return found[:, ::-1] if flip else found


class Windows:
    """All windows over the spatial dimensions of arrays (N, *spatial, C)."""

    def __init__(
        self, shape, kernel, stride=1, padding=0, dilation=1, input_dilation=1, flip=False
    ):
        self.shape, self.ndim = shape, len(kernel)
        self.index = [
            indices(*each, flip)
            for each in zip(
                shape[1:-1],
                kernel,
                numbers_for(stride, self.ndim),
                pairs_for(padding, self.ndim),
                numbers_for(dilation, self.ndim),
                numbers_for(input_dilation, self.ndim),
                strict=True,
            )
        ]
        self.mesh = (slice(None), *np.ix_(*[each.ravel() for each in self.index]))
        self.letters = "".join(o + t for o, t in zip(OUTPUTS, TAPS, strict=True))[: 2 * self.ndim]
        self.outputs, self.taps = OUTPUTS[: self.ndim], TAPS[: self.ndim]

    def unfold(self, x, fill=0.0):
        """Return the elements of all windows: (N, outputs, taps, outputs, taps, ..., C)."""
        sides = [(0, 0), *[(0, 1)] * self.ndim, (0, 0)]
        wide = np.pad(np.asarray(x, np.float64), sides, constant_values=fill)
        sizes = [n for each in self.index for n in each.shape]
        return wide[self.mesh].reshape(x.shape[0], *sizes, x.shape[-1])

    def fold(self, unfolded):
        """Add the elements of all windows to those that they came from."""
        wide = np.zeros((self.shape[0], *[n + 1 for n in self.shape[1:-1]], self.shape[-1]))
        flat = [each.size for each in self.index]
        np.add.at(wide, self.mesh, unfolded.reshape(self.shape[0], *flat, self.shape[-1]))
        return wide[(slice(None), *[slice(n) for n in self.shape[1:-1]])]
