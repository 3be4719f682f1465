"""The functions of the array API standard and other functions with kernels, one file per family."""

import cyrt.ops.seam as _seam  # noqa: F401
