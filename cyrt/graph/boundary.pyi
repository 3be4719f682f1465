# C-level functions only: see boundary.pxd.
