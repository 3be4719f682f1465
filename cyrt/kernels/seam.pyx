"""The functions of `kernels` and `builtin` that `graph` calls."""

from cyrt.builtin.fill cimport fill_launches, record_fill
from cyrt.graph cimport seam
from cyrt.kernels.encoding cimport add_kernel

seam.kernels.record_fill = record_fill
seam.kernels.fill_launches = fill_launches
seam.kernels.add_kernel = add_kernel
