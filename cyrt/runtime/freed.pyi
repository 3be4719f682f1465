# C-level functions only: see freed.pxd.
