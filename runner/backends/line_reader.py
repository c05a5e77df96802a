"""Split a stream of bytes into lines."""

import time
from collections.abc import Callable


class Lines:
    """Cuts what ``read`` returns into lines.

    ``read(timeout)`` returns some bytes, b"" at the end of the stream, and raises TimeoutError if none arrive in time.
    """

    def __init__(self, read: Callable[[float], bytes]) -> None:
        """Take the reading function."""
        self._read = read
        self._buffer = b""
        self._ended = False

    def next(self, timeout: float) -> bytes | None:
        """Return the next line without its newline, None at the end; raises TimeoutError after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            if self._ended:
                return None
            received = self._read(max(deadline - time.monotonic(), 0.0))
            self._ended = not received
            self._buffer += received
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line
