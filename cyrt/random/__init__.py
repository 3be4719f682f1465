"""Random numbers that depend only on a key and their index, and are the same on every device.

The generator is counter-based: Philox4x32-10 (Salmon et al., SC 2011). Number i of a call depends
on the key, the distribution and i, and not on the device, the grid, or what else runs. A call
without a key uses the next key of a sequence that the process keeps; :func:`seed` restarts it.

    key, other = cyrt.random.split(cyrt.random.key(7))
    x = cyrt.random.normal(shape=(3, 4), key=key)
"""

import typing as _typing

from cyrt.numpy.random import (
    Generator,
    choice,
    default_rng,
    rand,
    randn,
    random,
    shuffle,
    standard_normal,
)
from cyrt.other_names import refusing as _refusing
from cyrt.random.distributions import bernoulli, normal, randint, truncated_normal, uniform
from cyrt.random.keys import Key, fold_in, key, seed, split
from cyrt.random.sampling import categorical, permutation
from cyrt.random.transformed import (
    exponential,
    f,
    logistic,
    negative_binomial,
    pareto,
    rayleigh,
    standard_cauchy,
    standard_t,
    triangular,
    wald,
    weibull,
)
from cyrt.random.variates import (
    beta,
    binomial,
    chisquare,
    dirichlet,
    gamma,
    geometric,
    gumbel,
    laplace,
    lognormal,
    multinomial,
    multivariate_normal,
    poisson,
    vonmises,
)

__all__ = [
    "Generator",
    "Key",
    "bernoulli",
    "beta",
    "binomial",
    "categorical",
    "chisquare",
    "choice",
    "default_rng",
    "dirichlet",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "geometric",
    "gumbel",
    "key",
    "laplace",
    "logistic",
    "lognormal",
    "multinomial",
    "multivariate_normal",
    "negative_binomial",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "rand",
    "randint",
    "randn",
    "random",
    "rayleigh",
    "seed",
    "shuffle",
    "split",
    "standard_cauchy",
    "standard_normal",
    "standard_t",
    "triangular",
    "truncated_normal",
    "uniform",
    "vonmises",
    "wald",
    "weibull",
]


def __dir__() -> list[str]:
    return list(__all__)


if not _typing.TYPE_CHECKING:  # a type checker would take any name for one of the module
    __getattr__ = _refusing(__name__)
