"""Compiling CUDA C++ at run time, and reading what parameters a kernel takes."""
