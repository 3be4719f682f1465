# C-level functions only: see window.pxd.
