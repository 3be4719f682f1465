# C-level functions only: see shape.pxd.
