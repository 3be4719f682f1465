"""The result of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class BenchResult:
    """One program: its times in µs an operation, or a note that says why there are none.

    Attributes
    ----------
    kind : str
        ``floor``, ``case`` or ``peer``, whose times are comparable, or ``other``.
    name : str
        The case.
    what : str
        The program, in a few words.
    host, wall : float, optional
        Time of the CPU until all is launched, and until the GPU has finished.
    counts : dict of str to int, optional
        The encoder's counts of the measured operations; None if nothing became a graph.
    parts : dict of str to float, optional
        The terms of which `host` is the sum.
    figures : dict of str to str, optional
        Further measurements, by their columns' headings.
    """

    kind: str
    name: str
    what: str
    host: float | None = None
    wall: float | None = None
    note: str = ""
    counts: dict[str, int] | None = None
    parts: dict[str, float] | None = None
    figures: dict[str, str] | None = None

    @property
    def hits(self) -> float | None:
        """Percentage of the commits whose topology was known."""
        if not self.counts or not self.counts["commits"]:
            return None
        return 100 * self.counts["hits"] / self.counts["commits"]

    @property
    def patched(self) -> float | None:
        """Percentage of the nodes that were patched."""
        if not self.counts or not self.counts["commits"]:
            return None
        return 100 * self.counts["patched"] / self.counts["operations"]
