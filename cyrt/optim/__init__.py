"""Optimizers: pairs of functions that update nests of parameters by their gradients.

``optimizer.init(params)`` returns the state, and ``optimizer.update(grads, state, params)`` updates
the parameters and the state in place, and returns both. A nest is an array, or a dict, list, tuple,
named tuple or dataclass of nests.

    optimizer = cyrt.optim.adamw(cyrt.optim.warmup(cyrt.optim.cosine(3e-4, 10_000), 100))
    state = optimizer.init(params)
    params, state = optimizer.update(grads, state, params)
"""

import typing as _typing

from cyrt.optim.optimizer import Optimizer, adam, adamw, clip_by_global_norm, global_norm, lion, sgd
from cyrt.optim.schedules import Schedule, constant, cosine, exponential, linear, warmup
from cyrt.optim.state import State
from cyrt.other_names import refusing as _refusing

__all__ = [
    "Optimizer",
    "Schedule",
    "State",
    "adam",
    "adamw",
    "clip_by_global_norm",
    "constant",
    "cosine",
    "exponential",
    "global_norm",
    "linear",
    "lion",
    "sgd",
    "warmup",
]


def __dir__() -> list[str]:
    return list(__all__)


if not _typing.TYPE_CHECKING:  # a type checker would take any name for one of the module
    __getattr__ = _refusing(__name__)
