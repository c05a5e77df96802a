"""The file from which a server imports the harness: its children share the user, and so could change it."""

import hashlib
import os

from . import leftovers

PIECE_BYTES = 64 << 10  # a larger block would raise the thresholds of the allocator, see model.blob
ARCHIVE = "harness.zip"


class ProgramFile(object):
    """The zip archive, as it was before the first child."""

    def __init__(self, path: "str") -> "None":
        """Read the archive; an empty path stands for a harness that is no archive, which is never changed."""
        self.path = path
        self.pieces = list(pieces(path)) if path else []
        self.digest = digest(self.pieces)

    @classmethod
    def of_this_process(cls) -> "ProgramFile":
        """Return the archive that this module is from."""
        path = import_path()
        return cls(path if os.path.basename(path) == ARCHIVE else "")

    def is_changed(self) -> "bool":
        """Return whether the file has another content now, or is gone."""
        if not self.path:
            return False
        try:
            return digest(pieces(self.path)) != self.digest
        except OSError:
            return True

    def put_back(self) -> "None":
        """Write the archive anew, if it was changed; the folder may be gone, too."""
        if not self.is_changed():
            return
        leftovers.remove(self.path)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "wb") as file:
            for piece in self.pieces:
                file.write(piece)


def import_path() -> "str":
    """Return the zip archive, or the folder, from which the harness is imported."""
    folder = os.path.abspath(__file__)
    for _ in __name__.split("."):
        folder = os.path.dirname(folder)
    return folder


def pieces(path: "str") -> "object":
    """Yield the content of a regular file in pieces. Raises OSError where there is none, or a link or a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb", 0) as file:
        for piece in iter(lambda: file.read(PIECE_BYTES), b""):
            yield piece


def digest(content: "object") -> "bytes":
    """Return the SHA-256 of pieces."""
    total = hashlib.sha256()
    for piece in content:
        total.update(piece)
    return total.digest()
