# C-level functions only: see geometry.pxd.
