# C-level functions only: see outside.pxd.
