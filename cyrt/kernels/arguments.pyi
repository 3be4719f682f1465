# C-level functions only: see arguments.pxd.
