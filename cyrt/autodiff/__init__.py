"""Automatic differentiation: the functions that users call, and the rules of cyrt's functions."""

from cyrt import tape
from cyrt.autodiff import (  # noqa: F401  # they register rules
    activations,
    elementwise,
    fourier,
    indexing,
    layers,
    linear_algebra,
    losses,
    normalizations,
    products,
    reductions,
    shapes,
    windows,
)
from cyrt.autodiff.adapting import adapt, own

tape.bind(adapt, own)
