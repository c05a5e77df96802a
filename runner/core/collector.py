"""Python's collector of reference cycles, which a large run does not need."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Let Python not look for reference cycles: in a large run that takes a quarter of the time.

    Values without cycles are still freed as soon as nothing refers to them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
