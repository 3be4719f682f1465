# C-level functions only: see packing.pxd.
