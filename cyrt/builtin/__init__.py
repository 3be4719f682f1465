"""The built-in kernels and their launches.

A family of kernels has one name everywhere: ``kernels_cu/FAMILY.cu`` holds its kernels,
``FAMILY.pyx`` here records their launches, and ``rows/FAMILY.py`` declares its operations:

- ``TEMPLATES``: the names of its templates; each has a module of code per element type,
- ``rows()``: the family's rows of the catalogue,
- ``instance(row)``: the C++ that instantiates the templates for a row.

A kernel has one parameter, a struct that ``kernels_cu/params/FAMILY.h`` defines for both sides;
``param_bytes(row)`` of the module that fills it returns its size for each of a row's kernels, which
is compared with the loaded code.
"""

import cyrt.builtin.seam as _seam  # noqa: F401
