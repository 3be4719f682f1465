# C-level functions only: see pacing.pxd.
