# C-level functions only: see grid.pxd.
