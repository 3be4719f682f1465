# Python only: see builtin.pyi.
