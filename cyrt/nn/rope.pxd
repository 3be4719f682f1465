# Rotary position embedding: what attention shares with it.

from cyrt.builtin.rope cimport RopeSpace
from cyrt.ndarray cimport Array

# Check the arguments of a rotation of x's features, and set what a RopeSpace says of them and of
# their angles. Return the divisors of the pairs' turns, float32; or None.
cdef Array set_angles(RopeSpace* space, str name, Array x, object dims, object traditional,
                      object base, object scale, object freqs, double direction)
