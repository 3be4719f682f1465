# C-level functions only.
