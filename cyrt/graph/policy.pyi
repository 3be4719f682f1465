# C-level functions only: see policy.pxd.
