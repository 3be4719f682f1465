"""The CUDA driver's C ABI: found, opened, and kept in one table of function pointers."""
