# C-level declarations only: see seam.pxd.
"""The functions of `graph` that the runtime calls."""
