# C-level functions only: see poison.pxd.
