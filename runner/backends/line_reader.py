"""Split a stream of bytes into lines of bounded length."""

import time
from collections.abc import Callable

MAX_LINE = 64 << 20
"""Bytes of a line. Half a million samples, more than a cell takes, are 11 MB of JSON."""


class Lines:
    """Cuts what ``read`` returns into lines.

    ``read(timeout)`` returns some bytes, b"" at the end of the stream, and raises TimeoutError if none arrive in time.
    """

    def __init__(
        self,
        read: Callable[[float], bytes],
        max_line: int = MAX_LINE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the reading function, the most bytes of a line, and a clock in seconds."""
        self._read = read
        self._max_line = max_line
        self._clock = clock
        self._buffer = bytearray()
        self._searched = 0  # bytes at the start of the buffer that have no newline
        self._ended = False

    def next(self, timeout: float) -> bytes | None:
        """Return the next line without its newline, None at the end; reads at least once.

        Raises:
            TimeoutError: the line is not complete after ``timeout`` seconds, however many bytes have arrived.
            ValueError: the line is longer than ``max_line``; the message can follow "sent". Read no more after that.
        """
        deadline = self._clock() + timeout
        remaining = max(timeout, 0.0)
        while (end := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            self._refuse_longer(self._searched)
            if self._ended:
                return None
            if remaining < 0:
                raise TimeoutError
            received = self._read(remaining)
            self._ended = not received
            self._buffer += received
            remaining = deadline - self._clock()
        self._refuse_longer(end)
        with memoryview(self._buffer) as buffer:
            line = bytes(buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    def discard(self) -> None:
        """Drop what has been read and not been returned."""
        self._buffer.clear()
        self._searched = 0

    def _refuse_longer(self, length: int) -> None:
        if length > self._max_line:
            self.discard()
            raise ValueError(f"a line of more than {self._max_line / (1 << 20):g} MiB")
