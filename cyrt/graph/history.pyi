# C-level functions only: see history.pxd.
