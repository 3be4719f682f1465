# C-level functions only: see product.pxd.
