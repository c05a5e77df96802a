"""The files of a user's network."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """A user's network as files: what is sent to the environments, and imported there.

    Attributes:
        digest: ``sha256:`` and 64 hexadecimal digits, over the names and bytes of all files.
        entry: the name of the file with the classes, a key of ``files``.
        files: name relative to the folder of the entry, with ``/`` -> content.
    """

    digest: str
    entry: str
    files: Mapping[str, bytes] = field(repr=False)

    @classmethod
    def of(cls, entry: str, files: Mapping[str, bytes]) -> "ModelFiles":
        """Return files with their digest: the SHA-256 of each name and content in order, with its length before it."""
        total = hashlib.sha256()
        for name in sorted(files):
            for part in (name.encode(), files[name]):
                total.update(f"{len(part)}:".encode() + part)
        return cls(digest=f"sha256:{total.hexdigest()}", entry=entry, files=dict(files))

    def checksums(self) -> dict[str, str]:
        """Return name -> the SHA-256 of the file, in hexadecimal digits; the entry first."""
        names = [self.entry, *sorted(name for name in self.files if name != self.entry)]
        return {name: hashlib.sha256(self.files[name]).hexdigest() for name in names}

    def fact(self) -> dict[str, str]:
        """Return what records say of the files: name -> 12 hexadecimal digits.

        Of more than 20 files, the entry and, under ``other files``, the first digits of the digest of all.
        """
        checksums = self.checksums()
        if len(checksums) > LISTED_FILES:
            checksums = {self.entry: checksums[self.entry], OTHER_FILES: self.digest.removeprefix("sha256:")}
        return {name: checksum[:SHOWN_DIGITS] for name, checksum in checksums.items()}


LISTED_FILES = 20
SHOWN_DIGITS = 12
OTHER_FILES = "other files"
