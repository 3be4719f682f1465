# C-level functions only: see chain.pxd.
