# C-level functions only: see fill.pxd.
