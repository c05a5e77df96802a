"""Lines out of a stream that gives bytes when it likes."""

import time
from collections.abc import Callable


class Lines:
    """Cuts what ``read`` returns into lines.

    ``read(timeout)`` returns some bytes, b"" at the end of the stream, and raises TimeoutError when none came in time.
    """

    def __init__(self, read: Callable[[float], bytes]) -> None:
        """Take the reading function."""
        self._read = read
        self._parts = b""
        self._ended = False

    def next(self, timeout: float) -> bytes | None:
        """Return the next line without its newline, None at the end; raises TimeoutError after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._parts:
            if self._ended:
                return None
            some = self._read(max(deadline - time.monotonic(), 0.0))
            self._ended = not some
            self._parts += some
        line, self._parts = self._parts.split(b"\n", 1)
        return line
