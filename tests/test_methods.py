"""The functions behind the methods of arrays."""

from __future__ import annotations

import pytest

from cyrt.operators import bind


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ({"sum": sum}, r"bind: missing \['Flags', .*\], unknown \[\]"),
        ({"sums": sum}, r"unknown \['sums'\]"),
    ],
)
def test_every_function_is_bound_and_no_other(bound, message):
    with pytest.raises(TypeError, match=message):
        bind(**bound)
