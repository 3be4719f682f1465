# C-level functions only: see choice.pxd.
