"""The entries of a cache's folder."""

from __future__ import annotations

from cyrt.jit import cache
from cyrt.jit.cache import Cache


def entries(folder):
    return sorted((folder / f"jit-v{cache.FORMAT}").glob("*.entry"))


def cached_kernels(folder):
    found = Cache(folder, 1 << 30)
    return [e for e in found.entries() if found.load(e)[0]["kind"] == "kernel"]


def forged(key, text, body=b""):
    """An entry whose checksum is right, whatever its facts are."""
    sizes = len(text), len(body)
    checksum = cache._checksum(key, sizes, text + body)
    return cache._HEADER.pack(cache._MAGIC, *sizes, checksum) + text + body
