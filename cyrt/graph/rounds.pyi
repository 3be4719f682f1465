# C-level functions only: see rounds.pxd.
