"""Operations of neural networks, and their gradients.

``name_vjp`` returns the gradients of what ``name`` takes, from the gradient of its result.
"""

from cyrt.nn.norm import layer_norm, layer_norm_vjp, rms_norm, rms_norm_vjp

__all__ = ["layer_norm", "layer_norm_vjp", "rms_norm", "rms_norm_vjp"]
