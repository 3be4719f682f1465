"""Schedules of learning rates: a warmup, then a constant rate or a decay."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import SupportsIndex

from cyrt.nn.checks import number_of, positive_number
from cyrt.ops.arguments import int_of

__all__ = ["Schedule", "constant", "cosine", "exponential", "linear", "warmup"]

_MOST_STEPS = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Schedule:
    """A learning rate that depends on the number of steps done.

    :func:`constant`, :func:`cosine`, :func:`linear`, :func:`exponential` and :func:`warmup` make
    schedules. An optimizer's kernel computes the rate on the device. Calling the schedule computes
    it on the host, to print or plot it.

    Attributes
    ----------
    rate : float
        The rate after the warmup, 0 or more.
    start, end : float
        The rates of the first step and after the decay, 0 or more.
    warmup_steps, decay_steps : int
        The numbers of steps of the warmup and of the decay; 0 if there is none.
    curve : str
        How the rate decays: ``"cosine"``, ``"linear"`` or ``"exponential"``.
    factor : float
        The factor of an exponential decay over `decay_steps`; 1 for the others.

    Examples
    --------
    >>> from cyrt import optim
    >>> rate = optim.warmup(optim.cosine(1.0, 100), 10)
    >>> [round(rate(step), 3) for step in (0, 5, 10, 60, 110, 1000)]
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.0]
    """

    rate: float
    start: float = 0.0
    end: float = 0.0
    warmup_steps: int = 0
    decay_steps: int = 0
    curve: str = "cosine"
    factor: float = 1.0

    def __post_init__(self) -> None:
        for name in ("rate", "start", "end"):
            number_of(getattr(self, name), "Schedule", name, 0)
        number_of(self.factor, "Schedule", "factor", 0, 1)
        for name in ("warmup_steps", "decay_steps"):
            _count(getattr(self, name), "Schedule", name, least=0)
        if self.curve not in ("cosine", "linear", "exponential"):
            raise ValueError(
                f"Schedule: curve: expected 'cosine', 'linear' or 'exponential', got {self.curve!r}"
            )

    def __call__(self, step: SupportsIndex) -> float:
        """Return the rate of a step, where `step` is the number of steps before it."""
        done = _count(step, "Schedule", "step", least=0)
        if done < self.warmup_steps:
            return self.start + (self.rate - self.start) * (done / self.warmup_steps)
        if not self.decay_steps:
            return self.rate
        part = (done - self.warmup_steps) / self.decay_steps
        if self.curve == "exponential":
            return max(self.rate * math.pow(self.factor, part), self.end)
        part = min(part, 1.0)
        left = 1 - part if self.curve == "linear" else (1 + math.cos(math.pi * part)) / 2
        return self.end + (self.rate - self.end) * left


def _count(value: SupportsIndex, name: str, argument: str, least: int = 1) -> int:
    count = int_of(value, f"{name}: {argument}")
    if not least <= count <= _MOST_STEPS:
        raise ValueError(
            f"{name}: {argument}: expected an int from {least} to {_MOST_STEPS}, got {count}"
        )
    return count


def constant(rate: float) -> Schedule:
    """Return the schedule of a rate that does not change, which has the same effect as the number.

    Parameters
    ----------
    rate : float
        The rate of all steps, 0 or more.

    Returns
    -------
    Schedule

    Raises
    ------
    TypeError, ValueError
        The rate is not a finite number of 0 or more.

    Examples
    --------
    >>> from cyrt import optim
    >>> optim.constant(0.5)(100)
    0.5
    """
    return Schedule(number_of(rate, "constant", "rate", 0))


def cosine(rate: float, steps: SupportsIndex, end: float = 0.0) -> Schedule:
    """Return the schedule of a rate that falls along half a cosine.

    Parameters
    ----------
    rate : float
        The rate of the first step.
    steps : int
        The number of steps of the decay.
    end : float
        The rate of all later steps.

    Returns
    -------
    Schedule
        After n of the steps, the rate is ``end + (rate - end) * (1 + cos(pi * n / steps)) / 2``.

    Raises
    ------
    TypeError, ValueError
        A rate is not a finite number of 0 or more, or the steps are not an int from 1 to
        2**31 - 1.

    Notes
    -----
    Loshchilov and Hutter, `SGDR <https://arxiv.org/abs/1608.03983>`_ (2016), without restarts. This
    is ``optax.cosine_decay_schedule(rate, steps, alpha=end / rate)`` and MLX's ``cosine_decay``.

    Examples
    --------
    >>> from cyrt import optim
    >>> rate = optim.cosine(1.0, 4, end=0.2)
    >>> [round(rate(step), 3) for step in range(6)]
    [1.0, 0.883, 0.6, 0.317, 0.2, 0.2]
    """
    return Schedule(
        number_of(rate, "cosine", "rate", 0),
        end=number_of(end, "cosine", "end", 0),
        decay_steps=_count(steps, "cosine", "steps"),
    )


def linear(rate: float, steps: SupportsIndex, end: float = 0.0) -> Schedule:
    """Return the schedule of a rate that changes along a line.

    Parameters
    ----------
    rate : float
        The rate of the first step.
    steps : int
        The number of steps of the change.
    end : float
        The rate of all later steps.

    Returns
    -------
    Schedule
        After n of the steps, the rate is ``end + (rate - end) * (1 - n / steps)``.

    Raises
    ------
    TypeError, ValueError
        A rate is not a finite number of 0 or more, or the steps are not an int from 1 to
        2**31 - 1.

    Notes
    -----
    This is ``optax.linear_schedule(rate, end, steps)`` and MLX's ``linear_schedule``.

    Examples
    --------
    >>> from cyrt import optim
    >>> rate = optim.linear(1.0, 4, end=0.2)
    >>> [round(rate(step), 3) for step in range(6)]
    [1.0, 0.8, 0.6, 0.4, 0.2, 0.2]
    """
    return Schedule(
        number_of(rate, "linear", "rate", 0),
        end=number_of(end, "linear", "end", 0),
        decay_steps=_count(steps, "linear", "steps"),
        curve="linear",
    )


def exponential(rate: float, steps: SupportsIndex, factor: float, end: float = 0.0) -> Schedule:
    """Return the schedule of a rate that falls by a factor in each period.

    Parameters
    ----------
    rate : float
        The rate of the first step, 0 or more.
    steps : int
        The number of steps of a period.
    factor : float
        The factor of the rate in each period: above 0, and at most 1.
    end : float
        The least rate, from 0 to `rate`.

    Returns
    -------
    Schedule
        After n steps, the rate is ``max(rate * factor ** (n / steps), end)``.

    Raises
    ------
    TypeError, ValueError
        An argument is not such a number, or the steps are not an int from 1 to 2**31 - 1.

    Notes
    -----
    This is ``optax.exponential_decay(rate, steps, factor, end_value=end)``. With ``steps=1`` it is
    MLX's ``exponential_decay`` and PyTorch's ``ExponentialLR``.

    Examples
    --------
    >>> from cyrt import optim
    >>> rate = optim.exponential(1.0, 2, 0.25, end=0.1)
    >>> [round(rate(step), 3) for step in range(6)]
    [1.0, 0.5, 0.25, 0.125, 0.1, 0.1]
    """
    first = number_of(rate, "exponential", "rate", 0)
    by = positive_number(factor, "exponential", "factor")
    return Schedule(
        first,
        end=number_of(end, "exponential", "end", 0, first),
        decay_steps=_count(steps, "exponential", "steps"),
        curve="exponential",
        factor=number_of(by, "exponential", "factor", 0, 1),
    )


def warmup(rate: float | Schedule, steps: SupportsIndex, start: float = 0.0) -> Schedule:
    """Return a schedule that begins with a linear increase, before another schedule or rate.

    Parameters
    ----------
    rate : float or Schedule
        The schedule, or the constant rate, that begins after the increase.
    steps : int
        The number of steps of the increase.
    start : float
        The rate of the first step.

    Returns
    -------
    Schedule
        After n of the steps, the rate is ``start + (first - start) * n / steps``, where first is
        the schedule's first rate.

    Raises
    ------
    TypeError
        The rate is neither a number nor a Schedule, start is not a number, or steps not an int.
    ValueError
        A rate is not a finite number of 0 or more, the schedule has a warmup, or steps is not from
        1 to 2**31 - 1.

    Notes
    -----
    With a cosine this is ``optax.warmup_cosine_decay_schedule``, whose `decay_steps` contain those
    of the warmup.

    Examples
    --------
    >>> from cyrt import optim
    >>> rate = optim.warmup(0.4, 4)
    >>> [round(rate(step), 3) for step in range(6)]
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.4]
    """
    behind = rate if isinstance(rate, Schedule) else Schedule(number_of(rate, "warmup", "rate", 0))
    if behind.warmup_steps:
        raise ValueError(f"warmup: rate: expected a schedule without a warmup, got {behind}")
    return replace(
        behind,
        start=number_of(start, "warmup", "start", 0),
        warmup_steps=_count(steps, "warmup", "steps"),
    )
