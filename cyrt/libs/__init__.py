"""Libraries of NVIDIA's that cyrt calls, each found and opened at its first use."""
