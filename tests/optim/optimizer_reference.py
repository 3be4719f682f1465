"""Steps of optimizers by NumPy in float64: the formulas of PyTorch and optax."""

from __future__ import annotations

from functools import partial

import numpy as np

from cyrt import optim


def sgd(p, g, m, v, t, lr, momentum=0.0, nesterov=False, weight_decay=0.0):
    g = g + weight_decay * p
    m = momentum * m + g
    return p - lr * ((g + momentum * m) if nesterov else m), m, v


def adam(p, g, m, v, t, lr, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.0):
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    step = m / (1 - b1**t) / (np.sqrt(v / (1 - b2**t)) + eps)
    return p - lr * (step + weight_decay * p), m, v


def lion(p, g, m, v, t, lr, b1=0.9, b2=0.99, weight_decay=0.0):
    sign = np.sign(b1 * m + (1 - b1) * g)
    return p - lr * (sign + weight_decay * p), b2 * m + (1 - b2) * g, v


RULES = {"sgd": sgd, "adam": adam, "adamw": partial(adam, weight_decay=0.01), "lion": lion}
CASES = [
    ("sgd", {}),
    ("sgd", {"weight_decay": 0.1}),
    ("sgd", {"momentum": 0.9}),
    ("sgd", {"momentum": 0.8, "nesterov": True, "weight_decay": 0.1}),
    ("adam", {}),
    ("adam", {"b1": 0.0, "b2": 0.5, "eps": 1e-3}),
    ("adamw", {}),
    ("adamw", {"b1": 0.8, "b2": 0.9, "weight_decay": 0.1}),
    ("lion", {}),
    ("lion", {"b1": 0.5, "b2": 0.8, "weight_decay": 0.1}),
]


class Reference:
    """An optimizer of lists of NumPy arrays, beside that of cyrt with the same arguments."""

    def __init__(self, name, lr, max_norm=None, **settings):
        self.rule = partial(RULES[name], **settings)
        self.lr = lr
        self.max_norm = max_norm
        self.steps = 0
        self.moments = {}
        self.cyrt = getattr(optim, name)(lr, **settings)
        if max_norm is not None:
            self.cyrt = optim.clip_by_global_norm(max_norm, self.cyrt)

    def update(self, grads, params):
        """Return the parameters, float64, after a step."""
        rate = self.lr(self.steps) if callable(self.lr) else self.lr
        self.steps += 1
        grads = [np.asarray(g, np.float64) for g in grads]
        if self.max_norm is not None:
            norm = np.sqrt(sum((g * g).sum() for g in grads))
            grads = [g * min(1.0, self.max_norm / norm) for g in grads]
        stepped = []
        for i, (p, g) in enumerate(zip(params, grads, strict=True)):
            m, v = self.moments.get(i, (np.zeros(np.shape(p)), np.zeros(np.shape(p))))
            p, *self.moments[i] = self.rule(np.asarray(p, np.float64), g, m, v, self.steps, rate)
            stepped.append(p)
        return stepped
