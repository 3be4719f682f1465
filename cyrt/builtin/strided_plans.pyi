# C-level functions only: see strided_plans.pxd.
