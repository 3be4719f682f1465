# C-level functions only: see key_hash.pxd.
