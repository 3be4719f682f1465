# C-level functions only: see space.pxd.
