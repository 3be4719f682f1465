"""The CUDA driver's C ABI: located, opened, and stored in one table of function pointers."""
