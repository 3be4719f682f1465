# C-level functions only: see replay.pxd.
