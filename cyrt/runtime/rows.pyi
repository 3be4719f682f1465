# C-level functions only: see rows.pxd.
