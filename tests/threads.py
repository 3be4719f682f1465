"""Functions that run at once, each on a thread of its own."""

from __future__ import annotations

import threading
import time

MOST_SECONDS = 120


def run_in_threads(*functions):
    """Run the functions, and return the errors that they raised."""
    errors, start = [], threading.Barrier(len(functions))

    def run(function):
        start.wait(MOST_SECONDS)
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(each,), daemon=True) for each in functions]
    for thread in threads:
        thread.start()
    end = time.monotonic() + MOST_SECONDS
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
        assert not thread.is_alive()
    return errors
