"""A pipe of which a bounded part is kept, however much is written to it."""

import os

READ_BYTES = 64 << 10  # what a pipe holds; a larger block would raise the thresholds of the allocator, see model.blob


class Pipe(object):
    """A pipe from the child, and what has been read from it: everything up to ``limit`` bytes, or only the last ones."""

    def __init__(self, limit: "int", last: "bool" = False) -> "None":
        """Open both ends; keep ``limit`` bytes, the ``last`` ones or the first."""
        self.reader, self.writer = os.pipe()
        self.limit = limit
        self.last = last
        self.data = bytearray()
        self.closed = False  # all processes that had the other end have closed it

    def read(self) -> "None":
        """Read the next bytes; blocks where there are none."""
        part = os.read(self.reader, READ_BYTES)
        self.closed = not part
        self.data += part
        if self.last:
            del self.data[: -self.limit]
        else:
            del self.data[self.limit :]

    def is_complete(self) -> "bool":
        """Return whether a line, or more than fits, has arrived."""
        return self.data[-1:] == b"\n" or len(self.data) == self.limit

    def close_reader(self) -> "None":
        """Close the end from which this process reads."""
        os.close(self.reader)

    def close_writer(self) -> "None":
        """Close the end to which the child writes."""
        os.close(self.writer)
