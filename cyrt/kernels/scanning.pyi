# C-level functions only: see scanning.pxd.
