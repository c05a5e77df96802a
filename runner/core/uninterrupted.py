"""Steps that a signal to stop does not interrupt: what they start is known to the code that ends it.

The handler of a signal runs between any two bytecodes of the main thread, also while it starts a process, which nothing
would end then. ``cli.signals`` tries again once the step is over.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_depth = 0


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep signals to stop from raising in the block, which takes milliseconds; they never raise in other threads."""
    global _depth  # noqa: PLW0603  of the main thread, as handlers of signals are
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


def is_uninterrupted() -> bool:
    """Return whether the main thread is in such a block."""
    return _depth > 0
