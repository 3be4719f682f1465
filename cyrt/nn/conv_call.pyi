# C-level functions only: see conv_call.pxd.
