"""The functions of the array API standard, and others that have a kernel, one file per family."""

import cyrt.ops.seam as _seam  # noqa: F401
