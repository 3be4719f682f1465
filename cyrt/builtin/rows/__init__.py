"""The rows of the catalogue, one file for each family of kernels."""
