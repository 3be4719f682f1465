"""Operations of neural networks, and their gradients.

``name_vjp`` returns the gradients with respect to the arrays that ``name`` takes. Its first
argument is ``g``, the gradient of the result; then follow the arguments of ``name`` in their order.
``softmax_vjp`` and ``log_softmax_vjp`` take the result instead of the input, and ``rope_vjp`` needs
no input. Convolutions have ``conv_input_vjp`` and ``conv_weight_vjp``, which take the shape of the
array whose gradient they return.
"""

import typing as _typing

from cyrt.nn.activations import *
from cyrt.nn.attention import attention, attention_vjp
from cyrt.nn.channel_norm import *
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
from cyrt.nn.dropout import dropout, dropout_vjp
from cyrt.nn.embedding import *
from cyrt.nn.gated import swiglu_vjp
from cyrt.nn.gradients import log_softmax_vjp, logsumexp_vjp
from cyrt.nn.interpolate import interpolate, interpolate_vjp
from cyrt.nn.linear import linear, linear_vjp
from cyrt.nn.losses import *
from cyrt.nn.norm import layer_norm, layer_norm_vjp, rms_norm, rms_norm_vjp
from cyrt.nn.pool import avg_pool, avg_pool_vjp, max_pool, max_pool_vjp
from cyrt.nn.rope import rope, rope_vjp
from cyrt.nn.softmax import cross_entropy, cross_entropy_vjp, log_softmax, softmax, softmax_vjp
from cyrt.ops.functions import sigmoid, tanh
from cyrt.ops.reduce import logsumexp
from cyrt.other_names import refusing as _refusing

globals().pop("losses")  # an error then tells users of MLX's module of that name what to write

__all__ = [
    "attention",
    "attention_vjp",
    "avg_pool",
    "avg_pool_vjp",
    "batch_norm",
    "batch_norm_vjp",
    "binary_cross_entropy",
    "binary_cross_entropy_vjp",
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
    "dropout",
    "dropout_vjp",
    "elu",
    "elu_vjp",
    "embedding",
    "embedding_vjp",
    "gelu",
    "gelu_tanh",
    "gelu_tanh_vjp",
    "gelu_vjp",
    "glu",
    "glu_vjp",
    "group_norm",
    "group_norm_vjp",
    "hardswish",
    "hardswish_vjp",
    "huber_loss",
    "huber_loss_vjp",
    "instance_norm",
    "instance_norm_vjp",
    "interpolate",
    "interpolate_vjp",
    "l1_loss",
    "l1_loss_vjp",
    "layer_norm",
    "layer_norm_vjp",
    "leaky_relu",
    "leaky_relu_vjp",
    "linear",
    "linear_vjp",
    "log_softmax",
    "log_softmax_vjp",
    "logsumexp",
    "logsumexp_vjp",
    "max_pool",
    "max_pool_vjp",
    "mse_loss",
    "mse_loss_vjp",
    "one_hot",
    "relu",
    "relu_vjp",
    "rms_norm",
    "rms_norm_vjp",
    "rope",
    "rope_vjp",
    "selu",
    "selu_vjp",
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


def __dir__() -> list[str]:
    return list(__all__)


if not _typing.TYPE_CHECKING:  # a type checker would take any name for one of the module
    __getattr__ = _refusing(__name__)
