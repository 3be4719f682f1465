# C-level functions only: see sorting.pxd.
