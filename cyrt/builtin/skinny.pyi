# C-level functions only: see skinny.pxd.
