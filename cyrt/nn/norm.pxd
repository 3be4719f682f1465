# The checks of a normalisation's arguments, which a linear layer with a norm makes, too.

from cyrt.ndarray cimport Array

# Return an epsilon; raise an error, in the name of the operation, if it is none.
cdef double check_eps(int op, object eps) except -1
# Return a weight or a bias as one contiguous, aligned row for x, copied if it is not; raise an
# error if it does not fit x. None: there is none.
cdef Array dense_parameter(int op, str argument, object parameter, Array x)
