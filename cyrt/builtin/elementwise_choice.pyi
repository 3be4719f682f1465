# C-level functions only: see elementwise_choice.pxd.
