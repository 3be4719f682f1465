from collections.abc import Callable

from cyrt.libs.cudnn import Convolution, Problem

MOST_PLANS: int
SAMPLES: int
CALLS: int
ROTATED: int

def nbytes(problem: Problem, name: int) -> int: ...
def choose(make: Callable[[], Convolution], ordinal: int, version: str) -> Convolution: ...
