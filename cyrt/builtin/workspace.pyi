# C-level functions only: see workspace.pxd.
