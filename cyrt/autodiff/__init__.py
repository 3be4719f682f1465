"""Automatic differentiation: the functions that users call, and the rules of cyrt's functions."""

from __future__ import annotations

from cyrt import tape as _tape
from cyrt.autodiff import activations as _activations  # noqa: F401
from cyrt.autodiff import elementwise as _elementwise  # noqa: F401
from cyrt.autodiff import fourier as _fourier  # noqa: F401
from cyrt.autodiff import indexing as _indexing  # noqa: F401
from cyrt.autodiff import layers as _layers  # noqa: F401
from cyrt.autodiff import linear_algebra as _linear_algebra  # noqa: F401
from cyrt.autodiff import losses as _losses  # noqa: F401
from cyrt.autodiff import normalizations as _normalizations  # noqa: F401
from cyrt.autodiff import products as _products  # noqa: F401
from cyrt.autodiff import reductions as _reductions  # noqa: F401
from cyrt.autodiff import shapes as _shapes  # noqa: F401
from cyrt.autodiff import windows as _windows  # noqa: F401
from cyrt.autodiff.adapting import adapt as _adapt
from cyrt.autodiff.adapting import own as _own
from cyrt.autodiff.custom import checkpoint, custom_vjp
from cyrt.autodiff.transforms import grad, stop_gradient, value_and_grad, vjp

_tape.bind(_adapt, _own)

__all__ = ["checkpoint", "custom_vjp", "grad", "stop_gradient", "value_and_grad", "vjp"]
