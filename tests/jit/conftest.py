"""No disk cache, unless a test asks for one."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def uncached(setting):
    """What a test compiles is compiled."""
    setting(CYRT_CACHE="0")
