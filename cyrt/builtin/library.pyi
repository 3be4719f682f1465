# C-level functions only: see library.pxd.
