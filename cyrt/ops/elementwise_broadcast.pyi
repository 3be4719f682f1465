# C-level functions only: see elementwise_broadcast.pxd.
