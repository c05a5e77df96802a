"""Which checkouts use an environment, so that ``runner clean`` in one of them keeps what another needs.

An image has the label of the checkout that built it. Images and venvs are shared by all checkouts whose recipes are
equal, so each use of one is also noted, as a file of the cache: its content is the checkout, its time that of the use.
"""

import contextlib
import hashlib
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runner.core.files import read_bounded

FOLDER = "uses"  # below the cache folder
RECENT_SECONDS = 24 * 3600.0
"""How long what was used stays, whoever used it."""
MAX_LABEL = 4096  # bytes
DIGITS = 12


def label(checkout: Path) -> str:
    """Return what an image says of the checkout that built it: the host, and the folder of the matrix file."""
    return f"{socket.gethostname()}:{checkout.resolve()}"


def image_key(image: str) -> str:
    """Return the name under which the uses of an image are noted."""
    return f"image-{image.removeprefix('sha256:')[:DIGITS]}"


def note_use(cache: Path, key: str, checkout: Path) -> None:
    """Note that a checkout uses an environment now; a cache that cannot be written to notes nothing."""
    text = label(checkout)
    path = cache / FOLDER / key / hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """The uses of environments, as one checkout sees them.

    Attributes:
        cache: the folder with the notes.
        checkout: the folder of the matrix file of whoever asks.
        now: seconds since the epoch.
    """

    cache: Path
    checkout: Path
    now: Callable[[], float] = time.time

    def keeps(self, key: str, built_by: str | None) -> bool:
        """Return whether an environment stays: it was used today, or a checkout that still exists uses or built it.

        Args:
            key: the venv's folder, or what ``image_key`` returns.
            built_by: the label of its builder; empty if the environment has none, None if that is nothing to go by.
        """
        mine = label(self.checkout)
        users = dict(self._noted(key))
        if any(self.now() - used < RECENT_SECONDS for used in users.values()):
            return True
        known = {*users, *([built_by] if built_by else [])}
        others = {each for each in known if each != mine and not _is_gone(each)}
        return bool(others) or (built_by == "" and not users)

    def _noted(self, key: str) -> list[tuple[str, float]]:
        """Return (label of a checkout, when it last used the environment) of all notes."""
        folder = self.cache / FOLDER / key
        try:
            return [
                (read_bounded(path, MAX_LABEL).decode("utf-8", "replace"), path.stat().st_mtime)
                for path in sorted(folder.iterdir())
            ]
        except OSError:
            return []


def _is_gone(text: str) -> bool:
    """Return whether a label names a checkout of this host that no longer exists; nothing is known of other hosts."""
    host, _, folder = text.partition(":")
    return host == socket.gethostname() and not os.path.lexists(folder)
