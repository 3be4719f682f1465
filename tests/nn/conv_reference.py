"""The reference of convolutions and their gradients: windows in float64."""

from __future__ import annotations

import numpy as np
from rows_of_numbers import assert_close, exact, numbers
from scipy.special import erf
from windows import Windows

import cyrt
from cyrt import nn

TYPES = ["float16", "bfloat16", "float32"]
ACTIVATIONS = {
    "relu": lambda y: np.maximum(y, 0),
    "gelu": lambda y: y * 0.5 * (1 + erf(y / np.sqrt(2))),
    "gelu_tanh": lambda y: 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3))),
    "silu": lambda y: y / (1 + np.exp(-y)),
}


def split(x, groups, axis=-1):
    return np.split(exact(x), groups, axis)


def convolve(x, w, groups=1, **options):
    of = Windows(x.shape, w.shape[1:-1], **options)
    formula = f"n{of.letters}c,o{of.taps}c->n{of.outputs}o"
    parts = zip(split(x, groups), split(w, groups, 0), strict=True)
    return np.concatenate([np.einsum(formula, of.unfold(a), b) for a, b in parts], -1)


def input_gradient(g, w, shape, groups=1, **options):
    of = Windows(shape, w.shape[1:-1], **options)
    formula = f"n{of.outputs}o,o{of.taps}c->n{of.letters}c"
    parts = zip(split(g, groups), split(w, groups, 0), strict=True)
    return of.fold(np.concatenate([np.einsum(formula, a, b) for a, b in parts], -1))


def weight_gradient(g, x, shape, groups=1, **options):
    of = Windows(x.shape, shape[1:-1], **options)
    formula = f"n{of.outputs}o,n{of.letters}c->o{of.taps}c"
    parts = zip(split(g, groups), split(x, groups), strict=True)
    return np.concatenate([np.einsum(formula, a, of.unfold(b)) for a, b in parts], 0)


def compare(found, wanted, name):
    assert found.shape == wanted.shape
    # float32 sums of n terms differ by their order.
    assert_close(found, wanted, name, scale=4 * max(1, np.abs(wanted).max(initial=0)))


def check(rng, name, x_shape, w_shape, **options):
    """The result and both gradients, against the references."""
    x, w = numbers(rng, name, *x_shape), numbers(rng, name, *w_shape)
    wanted = convolve(x, w, **options)
    g = numbers(rng, name, *wanted.shape)
    a, b, c = (cyrt.asarray(each) for each in (x, w, g))
    compare(nn.conv_general(a, b, **options), wanted, name)
    wanted = input_gradient(g, w, x_shape, **options)
    compare(nn.conv_input_vjp(c, x_shape, b, **options), wanted, name)
    wanted = weight_gradient(g, x, w_shape, **options)
    compare(nn.conv_weight_vjp(c, a, w_shape, **options), wanted, name)


def arrays(rng, name, *shapes):
    """Return random arrays on the host, and then the same on the device."""
    hosts = [numbers(rng, name, *shape) for shape in shapes]
    return *hosts, *(cyrt.asarray(host) for host in hosts)
