# C-level functions only: see direct.pxd.
