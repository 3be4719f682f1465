# C-level functions only: see places.pxd.
