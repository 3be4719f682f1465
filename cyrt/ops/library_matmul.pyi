# C-level functions only: see library_matmul.pxd.
