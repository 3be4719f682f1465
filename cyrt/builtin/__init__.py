"""The built-in kernels and their launches.

A family of kernels has the same name everywhere: ``kernels_cu/FAMILY.cu`` has its kernels,
``FAMILY.pyx`` in this folder records their launches, and ``rows/FAMILY.py`` declares its
operations:

- ``TEMPLATES``: the names of its templates; each has a module of code per element type,
- ``rows()``: the family's rows of the catalogue,
- ``instance(row)``: the C++ that instantiates the templates for a row.

A kernel has one parameter, a struct that ``kernels_cu/params/FAMILY.h`` defines for the kernel and
for the launch. ``PARAM_BYTES`` of the module that fills the struct has its size, or several sizes
if the kernels have different structs; these are compared with those in the loaded code.
"""

import cyrt.builtin.seam as _seam  # noqa: F401
