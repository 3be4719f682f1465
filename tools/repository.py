"""The address of the repository's pages on the web."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# https://HOST/PATH, ssh://USER@HOST/PATH, USER@HOST:PATH
_REMOTE = re.compile(
    r"(?:(?:https|ssh|git)://(?:[^@/]+@)?(?P<host>[\w.-]+)(?::\d+)?/|[\w-]+@(?P<other>[\w.-]+):)"
    r"(?P<path>[\w./~-]+?)(?:\.git)?/?"
)


def web_address(remote: str | None = None) -> str | None:
    """Return the address that belongs to a remote of git's, by default that of "origin"; None where
    the remote is a folder, or there is none."""
    if remote is None:
        try:
            remote = subprocess.run(
                ["git", "-C", str(ROOT), "config", "--get", "remote.origin.url"],
                check=False,
                capture_output=True,
                text=True,
            ).stdout.strip()
        except OSError:  # git is not installed
            return None
    found = _REMOTE.fullmatch(remote)
    return found and f"https://{found['host'] or found['other']}/{found['path']}"
