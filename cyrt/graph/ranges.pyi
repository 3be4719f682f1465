# C-level functions only: see ranges.pxd.
