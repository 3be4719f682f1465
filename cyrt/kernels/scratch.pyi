# C-level functions only: see scratch.pxd.
