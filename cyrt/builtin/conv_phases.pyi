# C-level functions only: see conv_phases.pxd.
