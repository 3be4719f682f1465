# C-level functions only: see ending.pxd.
