"""Functions of arrays, one file a family."""
