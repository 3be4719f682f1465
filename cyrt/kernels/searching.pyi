# C-level functions only: see searching.pxd.
