# C-level functions only: see executable.pxd.
