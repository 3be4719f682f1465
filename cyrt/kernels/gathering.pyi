# C-level functions only: see gathering.pxd.
