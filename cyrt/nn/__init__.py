"""Operations of neural networks, and their gradients.

``name_vjp`` returns the gradients of what ``name`` takes, from that and from the gradient of its
result; ``softmax_vjp`` takes softmax's result instead, and ``rope_vjp`` that gradient alone.
"""

from cyrt.nn.activations import *
from cyrt.nn.attention import attention, attention_vjp
from cyrt.nn.conv import (
    conv1d,
    conv2d,
    conv3d,
    conv_general,
    conv_input_vjp,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    conv_weight_vjp,
)
from cyrt.nn.gated import swiglu_vjp
from cyrt.nn.linear import linear
from cyrt.nn.norm import layer_norm, layer_norm_vjp, rms_norm, rms_norm_vjp
from cyrt.nn.pool import avg_pool, avg_pool_vjp, max_pool, max_pool_vjp
from cyrt.nn.rope import rope, rope_vjp
from cyrt.nn.softmax import cross_entropy, cross_entropy_vjp, log_softmax, softmax, softmax_vjp
from cyrt.ops.functions import sigmoid, tanh
from cyrt.ops.reduce import logsumexp

__all__ = [
    "attention",
    "attention_vjp",
    "avg_pool",
    "avg_pool_vjp",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_general",
    "conv_input_vjp",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "conv_weight_vjp",
    "cross_entropy",
    "cross_entropy_vjp",
    "gelu",
    "gelu_tanh",
    "gelu_tanh_vjp",
    "gelu_vjp",
    "layer_norm",
    "layer_norm_vjp",
    "linear",
    "log_softmax",
    "logsumexp",
    "max_pool",
    "max_pool_vjp",
    "relu",
    "relu_vjp",
    "rms_norm",
    "rms_norm_vjp",
    "rope",
    "rope_vjp",
    "sigmoid",
    "sigmoid_vjp",
    "silu",
    "silu_vjp",
    "softmax",
    "softmax_vjp",
    "softplus",
    "softplus_vjp",
    "swiglu",
    "swiglu_vjp",
    "tanh",
    "tanh_vjp",
]
