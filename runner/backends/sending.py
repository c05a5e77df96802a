"""How long a server may take to read what it is sent."""

import time

UNREAD_SECONDS = 60.0
"""Without reading anything after which a server is given up, however much time its request has left."""


class UnreadError(TimeoutError):
    """A server has not read what it was sent; the message says for how long."""


class SendTime:
    """The time that is left for sending to a server."""

    def __init__(self, timeout: float) -> None:
        """Begin now; all has to be read within ``timeout`` seconds."""
        self._timeout = timeout
        self._begin = self._progress = time.monotonic()

    def note_progress(self) -> None:
        """Note that the server has read something."""
        self._progress = time.monotonic()

    def left(self) -> float:
        """Return the seconds, above 0, in which the server has to read something.

        Raises:
            UnreadError: there are none.
        """
        now = time.monotonic()
        total, silence = self._begin + self._timeout - now, self._progress + UNREAD_SECONDS - now
        if total <= 0:
            raise UnreadError(f"did not read what it was sent within {self._timeout:g} s")
        if silence <= 0:
            raise UnreadError(f"read nothing for {UNREAD_SECONDS:g} s")
        return min(total, silence)
