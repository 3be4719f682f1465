# C-level functions only: see recording.pxd.
