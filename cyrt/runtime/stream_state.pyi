# C-level functions only: see stream_state.pxd.
