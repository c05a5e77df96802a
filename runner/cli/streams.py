"""Standard streams that no reader, disk or encoding can end a command with."""

import codecs
import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO

from runner.core.errors import RunnerError, file_problem

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

FALLBACK = "runner.fallback"
"""The name of the error handler of both streams."""
FALLBACKS = str.maketrans(
    {"\N{EN DASH}": "-", "\N{PLUS-MINUS SIGN}": "+-", "\N{MULTIPLICATION SIGN}": "x", "\N{RIGHTWARDS ARROW}": "->"}
    | dict(zip("▁▂▃▄▅▆▇█", "_.,-=+*#", strict=True))  # bars
    | dict(zip("▲▼●○•│┤", "^vo.o||", strict=True))  # marks and axis of a chart
    | {"\N{MICRO SIGN}": "u", "\N{DEGREE SIGN}": "", "\N{HORIZONTAL ELLIPSIS}": "...", "\N{MIDDLE DOT}": "-"}
)
"""Characters of our own texts -> what an encoding without them prints; others become a question mark."""


def protect() -> None:
    """Open closed standard streams on /dev/null, and replace stdout and stderr of this process by lasting ones."""
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:  # else the next file that is opened would be the stream
            os.open(os.devnull, mode)  # the lowest free descriptor: this one
    register_fallback()
    sys.stdout = lasting(Stream(1, required=True), sys.stdout)
    sys.stderr = lasting(Stream(2, required=False), sys.stderr)


def lasting(stream: "Stream", before: TextIO | None) -> io.TextIOWrapper:
    """Return a text stream on a descriptor, in the encoding of the one that it replaces; None is a closed one."""
    encoding = getattr(before, "encoding", None) or "utf-8"
    return io.TextIOWrapper(
        io.BufferedWriter(stream), encoding=encoding, errors=FALLBACK, line_buffering=stream.isatty() or stream.lossy
    )


def register_fallback() -> None:
    """Make FALLBACK the name of an error handler for ``encode``."""
    codecs.register_error(FALLBACK, _fall_back)


def _fall_back(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end].translate(FALLBACKS)
    return letters.encode("ascii", "replace").decode(), error.end


class Stream(io.FileIO):
    """A descriptor that becomes /dev/null when it can no longer be written."""

    def __init__(self, descriptor: int, *, required: bool) -> None:
        """Take a descriptor, and whether output that is lost there is an error: a result is, a note is not."""
        super().__init__(descriptor, "w", closefd=False)
        self.lossy = not required

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write; where the reader has closed the pipe, as ``head`` does, this and all later output is dropped.

        Raises:
            RunnerError: a required stream cannot be written for another reason, such as a full disk.
        """
        try:
            while (written := super().write(data)) is None:  # somebody has made it non-blocking
                select.select([], [self], [])
        except OSError as error:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            if not self.lossy and error.errno != errno.EPIPE:
                raise RunnerError(file_problem(error, "stdout")) from error
            return memoryview(data).nbytes
        return written
