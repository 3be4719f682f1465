"""The functions of `builtin` that `graph` calls."""

from cyrt.builtin.fill cimport fill_launches, record_fill
from cyrt.graph cimport seam

seam.builtin.record_fill = record_fill
seam.builtin.fill_launches = fill_launches
