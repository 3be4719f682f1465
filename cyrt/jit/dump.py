"""``CYRT_JIT_DUMP``: the inputs and outputs of each compilation, as files."""

from __future__ import annotations

import hashlib
import os
import re

from cyrt import settings
from cyrt.jit.job import Job
from cyrt.jit.nvrtc import Result


def dump(job: Job, result: Result) -> None:
    """Write a compilation's source, PTX, cubin and log to the folder of the setting, if it is set.

    Raises
    ------
    ValueError
        If the files cannot be written.
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
        raise ValueError(f"CYRT_JIT_DUMP={folder!r} is not a folder to write to: {error}") from None
