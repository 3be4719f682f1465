# C-level functions only: see encoding.pxd.
