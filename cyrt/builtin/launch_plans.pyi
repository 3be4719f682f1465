# C-level functions only: see launch_plans.pxd.
