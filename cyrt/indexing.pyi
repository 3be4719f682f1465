# C-level functions only: see indexing.pxd.
