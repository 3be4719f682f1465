# Products of matrices, vectors and tensors.

# The function `matmul`.
cdef object matrix_product(object x1, object x2, object out, object dtype)
