"""Which checkouts need an environment, so that ``runner clean`` in one of them keeps what another needs.

An image has the label of the checkout that built it. Images and venvs are shared by all checkouts whose recipes are
equal, so each use is also noted: that of an image on its engine, see ``docker.claims``, that of a venv as a file of the
cache, whose content is the checkout and whose time is that of the use.
"""

import contextlib
import hashlib
import os
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from runner.core.files import read_bounded

FOLDER = "uses"  # below the cache folder
RECENT_SECONDS = 24 * 3600.0
"""How long what was used stays, whoever used it."""
MAX_LABEL = 4096  # bytes
DIGITS = 12
UNKNOWN = "an unknown checkout"
"""Whose an environment is that names no checkout, and that none has used: an older version made it."""


class Use(NamedTuple):
    """A use of an environment: the label of the checkout, and when, in seconds since the epoch."""

    checkout: str
    at: float


class Need(NamedTuple):
    """Who needs an environment.

    Attributes:
        recent: somebody has used it in the last RECENT_SECONDS.
        others: the labels of the other checkouts that exist, and built or used it, sorted; UNKNOWN alone where nothing
            says whose it is.
    """

    recent: bool = False
    others: tuple[str, ...] = ()

    @property
    def keeps(self) -> bool:
        """Whether it stays unless everything may go."""
        return self.recent or self.others not in {(), (UNKNOWN,)}


def label(checkout: Path) -> str:
    """Return what an environment says of a checkout: the host, and the folder of the matrix file."""
    return f"{socket.gethostname()}:{checkout.resolve()}"


def note_use(cache: Path, key: str, checkout: Path) -> None:
    """Note that a checkout uses a venv now; a cache that cannot be written to notes nothing."""
    text = label(checkout)
    path = cache / FOLDER / key / hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:DIGITS]
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode(errors="surrogateescape"))


def noted_uses(cache: Path, key: str) -> tuple[Use, ...]:
    """Return the uses of a venv that are noted in a cache; ``key`` is the name of its folder."""
    try:
        return tuple(
            Use(read_bounded(path, MAX_LABEL).decode(errors="surrogateescape"), path.stat().st_mtime)
            for path in sorted((cache / FOLDER / key).iterdir())
        )
    except OSError:
        return ()


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout that asks who else needs an environment.

    Attributes:
        folder: that of its matrix file.
        now: returns seconds since the epoch.
    """

    folder: Path
    now: Callable[[], float] = time.time

    def need(self, uses: Iterable[Use], built_by: str = "") -> Need:
        """Return who needs an environment.

        Args:
            uses: of the environment.
            built_by: the label of its builder; empty if it names none, or where that is nothing to go by: an image that
                a registry has.
        """
        uses, mine = tuple(uses), label(self.folder)
        known = {use.checkout for use in uses} | ({built_by} if built_by else set())
        others = {each for each in known if each != mine and not is_gone(each)}
        if not known:
            others = {UNKNOWN}
        return Need(any(self.now() - use.at < RECENT_SECONDS for use in uses), tuple(sorted(others)))


def is_gone(text: str) -> bool:
    """Return whether a label names a checkout of this host that no longer exists.

    Nothing is known of other hosts, nor of a folder that this user may not look into.
    """
    host, _, folder = text.partition(":")
    if host != socket.gethostname():
        return False
    try:
        os.lstat(folder)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False
