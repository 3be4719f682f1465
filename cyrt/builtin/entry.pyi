# C-level functions only: see entry.pxd.
