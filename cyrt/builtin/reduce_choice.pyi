# C-level functions only: see reduce_choice.pxd.
