"""The functions of `ops` that arrays and their operators call."""

from cyrt cimport operators
from cyrt.ops.copy cimport assign_value
from cyrt.ops.elementwise cimport apply_binary, apply_unary

operators.ops.binary = apply_binary
operators.ops.unary = apply_unary
operators.ops.assign = assign_value
