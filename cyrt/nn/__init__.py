"""Operations of neural networks, and their gradients.

``name_vjp`` returns the gradients of what ``name`` takes, from the gradient of its result.
"""

from cyrt.nn.norm import layer_norm, layer_norm_vjp, rms_norm, rms_norm_vjp
from cyrt.nn.softmax import cross_entropy, cross_entropy_vjp, log_softmax, softmax, softmax_vjp
from cyrt.ops.reduce import logsumexp

__all__ = [
    "cross_entropy",
    "cross_entropy_vjp",
    "layer_norm",
    "layer_norm_vjp",
    "log_softmax",
    "logsumexp",
    "rms_norm",
    "rms_norm_vjp",
    "softmax",
    "softmax_vjp",
]
