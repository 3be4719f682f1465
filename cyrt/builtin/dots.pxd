# Sums of products, one for each result: how threads share them, and the parts of a sum.

from cyrt.builtin.product cimport Dot, Problem
from cyrt.builtin.space cimport Space
from cyrt.graph.recording cimport Geometry

# Arrange neighbouring threads along a row; return the number of parts. `space` is that of the
# results, of which there are `rows`.
cdef long long choose_rows(const Problem* p, const Space* space, long long rows, Dot* args,
                           Geometry* geometry) noexcept
# Assign neighbouring results to neighbouring threads; return the number of parts.
cdef long long choose_columns(const Problem* p, const Space* space, Dot* args,
                              Geometry* geometry) noexcept
