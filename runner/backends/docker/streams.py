"""The attached socket of a container: the engine's frames, split into stdout and the end of stderr."""

import time
from collections.abc import Callable
from typing import Protocol

from runner.core.text import printable

HEADER = 8
STREAMS = (0, 1, 2)  # stdin, which some engines use for stdout before a container starts; stdout; stderr
STDERR = 2
MAX_FRAME = 16 << 20  # bytes; engines pass on what one read of a pipe returned, some 32 KiB
LAST_BYTES = 64 * 1024  # of stderr
LINE_LENGTH = 1000  # characters of a line of stderr; longer lines are cut
MIN_TIMEOUT = 0.001  # seconds; 0 would make a socket non-blocking


class Wire(Protocol):
    """The common methods of a socket, a TLS socket and a channel of paramiko."""

    def settimeout(self, timeout: float | None, /) -> None: ...  # noqa: D102
    def recv(self, size: int, /) -> bytes: ...  # noqa: D102
    def send(self, data: memoryview, /) -> int: ...  # noqa: D102
    def shutdown(self, how: int, /) -> None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


class Streams:
    """Splits the engine's frames, each with the number of a stream and a length, into stdout and stderr.

    The format is that of ``POST /containers/{id}/attach`` (https://docs.docker.com/reference/api/engine): one byte with
    the number of the stream, three zeros, and four bytes with the length, most significant byte first.

    Attributes:
        invalid: the header of a frame that does not follow the format, as text; the stream ends before it.
    """

    def __init__(self, wire: Wire, clock: Callable[[], float] = time.monotonic) -> None:
        """Read from ``wire``; ``clock`` returns seconds."""
        self._wire = wire
        self._clock = clock
        self._buffer = bytearray()
        self._stderr = bytearray()
        self.invalid = ""

    def read(self, timeout: float) -> bytes:
        """Return some bytes of stdout, b"" at the end; keep the end of stderr.

        Raises:
            TimeoutError: no stdout for ``timeout`` seconds, however much stderr there was.
        """
        end, reads = self._clock() + timeout, 0
        while not (out := self._frames()) and not self.invalid:
            remaining = end - self._clock()
            if remaining <= 0 and reads:
                raise TimeoutError
            reads += 1
            self._wire.settimeout(max(remaining, MIN_TIMEOUT))
            try:
                received = self._wire.recv(1 << 20)
            except TimeoutError:
                raise
            except OSError:  # the engine is gone; `ending` finds out
                return b""
            if not received:
                return b""
            self._buffer += received
        return out

    def _frames(self) -> bytes:
        out = bytearray()
        while len(self._buffer) >= HEADER:
            size = int.from_bytes(self._buffer[4:HEADER], "big")
            if self._buffer[0] not in STREAMS or any(self._buffer[1:4]) or size > MAX_FRAME:
                self.invalid = self._buffer[:HEADER].hex(" ")
                break
            end = HEADER + size
            if len(self._buffer) < end:
                break
            if self._buffer[0] == STDERR:
                self._stderr += self._buffer[HEADER:end]
                del self._stderr[:-LAST_BYTES]
            else:
                out += self._buffer[HEADER:end]
            del self._buffer[:end]
        return bytes(out)

    def words(self) -> str:
        """Return the end of stderr, printable, in lines of at most LINE_LENGTH characters."""
        text = printable(self._stderr.decode("utf-8", "replace"), multiline=True)
        return "\n".join(printable(line, LINE_LENGTH) for line in text.split("\n"))
