# C-level functions only: see submission.pxd.
