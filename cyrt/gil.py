"""The GIL, which cyrt needs: on a free-threaded Python it is enabled, or the import is refused."""

from __future__ import annotations

import sys
import warnings

# Pythons before 3.13 have no such function, and always the GIL.
_is_enabled = getattr(sys, "_is_gil_enabled", lambda: True)

if not _is_enabled():
    with warnings.catch_warnings():
        # The interpreter's own warning names an internal module of cyrt.
        warnings.filterwarnings("ignore", "The global interpreter lock", RuntimeWarning)
        import cyrt.driver.table  # noqa: F401
    if not _is_enabled():
        raise ImportError(
            "cyrt needs the GIL, which PYTHON_GIL=0 or -X gil=0 keeps disabled; start Python "
            "without that setting"
        )
    warnings.warn(
        "cyrt needs the GIL, so its import has enabled the GIL for this process; start Python with "
        "PYTHON_GIL=1 or -X gil=1 to enable it without this warning",
        RuntimeWarning,
        stacklevel=3,  # the line that imports cyrt: importlib's frames do not count
    )
