# C-level functions only: see dots.pxd.
