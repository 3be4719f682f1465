# C-level functions only: see order.pxd.
