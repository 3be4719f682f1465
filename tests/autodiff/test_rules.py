"""Every rule against numerical differentiation."""

from __future__ import annotations

import pytest
from differentiation_cases import CASES
from linear_algebra_cases import CASES as LINEAR_ALGEBRA
from numerical_gradients import check

ALL = [
    pytest.param(function, arrays, second, id=f"{name}-{i}")
    for name, cases in {**CASES, **LINEAR_ALGEBRA}.items()
    for i, (function, arrays, second) in enumerate(cases)
]


@pytest.mark.parametrize(("function", "arrays", "second"), ALL)
def test_a_rule_agrees_with_differences(function, arrays, second):
    check(function, *arrays, second=second)
