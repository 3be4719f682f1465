# C-level functions only: see loss.pxd.
