"""Files that are written completely or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def replace_file(path: Any) -> Iterator[str]:
    """Yield the name of a new file in a path's folder, which replaces the path after the block.

    An error in the block leaves the path as it was. The new name has the path's suffix. A path that
    is not a regular file, such as a pipe, cannot be replaced: its own name is yielded.

    Parameters
    ----------
    path : str, bytes or os.PathLike
        A link is followed: its target is replaced.
    """
    name = os.fsdecode(path)
    target = os.path.realpath(name)
    if os.path.exists(target) and not os.path.isfile(target):
        yield name
        return
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)
    partial = os.path.join(folder, f".{secrets.token_hex(8)}.partial{os.path.splitext(name)[1]}")
    try:
        yield partial
        if os.path.exists(target):
            shutil.copymode(target, partial)
        os.replace(partial, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(partial)
        raise
