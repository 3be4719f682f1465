"""Families of built-in kernels, one a file: their rows and the C++ that their kernels are made of.

A family's file has

- ``FAMILIES``: the file of kernels_cu with the templates of each family that it describes,
- ``rows()``: the rows of the catalogue,
- ``instance(row)``: C++ that makes a row's kernels of the templates,
- ``param_bytes(row)``: the size of each kernel's one parameter, a struct.
"""
