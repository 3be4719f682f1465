"""The functions of `ops` that arrays and their operators call."""

from cyrt cimport operators
from cyrt.ops.copy cimport assign_value
from cyrt.ops.elementwise cimport binary, unary
from cyrt.ops.matmul cimport matrix_product
from cyrt.ops.shapes cimport permute_axes, reshape_to

operators.ops.binary = binary
operators.ops.unary = unary
operators.ops.assign = assign_value
operators.ops.matmul = matrix_product
operators.ops.reshape = reshape_to
operators.ops.permute_dims = permute_axes
