"""Files that are written whole, or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def replacing(path: Any) -> Iterator[str]:
    """The name of a new file beside a path, which takes the path's place after the block.

    An error in the block leaves the path as it was. The new name ends as the path's does. A path
    that is no regular file, such as a pipe, cannot be replaced: its own name is the result.

    Parameters
    ----------
    path : str, bytes or os.PathLike
        A link is followed: what it leads to is replaced.
    """
    name = os.fsdecode(path)
    target = os.path.realpath(name)
    if os.path.exists(target) and not os.path.isfile(target):
        yield name
        return
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)
    partial = os.path.join(folder,
                           f".{secrets.token_hex(8)}.partial{os.path.splitext(name)[1]}")
    try:
        yield partial
        if os.path.exists(target):
            shutil.copymode(target, partial)
        os.replace(partial, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(partial)
        raise
