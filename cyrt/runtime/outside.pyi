# C-level functions only: see hazards.pxd.
