# C-level functions only: see transfer.pxd.
