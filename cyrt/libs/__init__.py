"""NVIDIA's libraries that cyrt calls; each is found and opened at its first use."""
