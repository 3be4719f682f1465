# C-level functions only: see pool.pxd.
