"""The names of the public modules of ``cyrt``, which has a page of the reference for each."""

NAMES = ("cupy_compat", "fft", "kernels", "linalg", "nn", "numpy", "optim", "random", "torch")
