# C-level functions only: see blocks.pxd.
