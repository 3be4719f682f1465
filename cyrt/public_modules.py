"""The names of the public modules of ``cyrt``. The reference has a page for each."""

NAMES = ("cupy_compat", "fft", "kernels", "linalg", "nn", "numpy", "optim", "random", "torch")
