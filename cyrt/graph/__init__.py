"""Operations as graphs: recorded, keyed by topology, and launched as executable graphs."""

from cyrt.graph import seam as _seam  # noqa: F401
