"""``CYRT_JIT_DUMP``: what each compilation was given and gave, as files to read."""

from __future__ import annotations

import hashlib
import os
import re

from cyrt import settings
from cyrt.jit.job import Job
from cyrt.jit.nvrtc import Result


def dump(job: Job, result: Result) -> None:
    """Write a compilation's source, PTX, cubin and log, where the setting names a folder.

    Raises
    ------
    ValueError
        If they cannot be written there.
    """
    folder = settings.get("CYRT_JIT_DUMP")
    if not folder:
        return
    texts = (job.source, *job.names, *job.options, *job.macros, *sum(job.headers.items(), ()))
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
    first = job.names[0] if job.names else os.path.splitext(os.path.basename(job.filename))[0]
    base = f"{re.sub(r'[^A-Za-z0-9]+', '_', first)[:60]}-{digest}-{job.arch}"
    log = [
        f"file: {job.filename}",
        f"names: {', '.join(job.names) or 'none'}",
        f"options: {' '.join(job.options)}",
        *job.macros,
        f"outcome: {result.name}",
        result.log,
    ]
    files = {
        ".cu": job.source.encode(),
        ".ptx": result.ptx.encode(),
        ".cubin": result.cubin,
        ".log": "\n".join(log).encode(),
    }
    try:
        os.makedirs(folder, exist_ok=True)
        for suffix, content in files.items():
            if content:
                with open(os.path.join(folder, base + suffix), "wb") as file:
                    file.write(content)
    except OSError as error:
        raise ValueError(f"CYRT_JIT_DUMP={folder!r} is no folder to write to: {error}") from None
