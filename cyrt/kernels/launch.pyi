# C-level functions only: see launch.pxd.
