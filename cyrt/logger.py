"""The logger ``cyrt``, which is quiet unless the program gives it, or the root, a handler."""

from __future__ import annotations

import logging

logger = logging.getLogger("cyrt")
logger.addHandler(logging.NullHandler())
