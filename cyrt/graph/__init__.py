"""Operations as graphs: recorded, keyed by topology, and launched as executable graphs."""

import cyrt.graph.seam as _seam  # noqa: F401
