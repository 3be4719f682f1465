# C-level functions only: see reduction_choice.pxd.
