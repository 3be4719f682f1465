# C-level declarations only: see seam.pxd.
