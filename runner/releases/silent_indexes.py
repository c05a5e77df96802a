"""Package indexes that do not answer: asked once, briefly, and not again for a while.

uv tries an address four times, which costs some ten seconds for each lock.
"""

import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

SECONDS = 2.0
"""How long an index may take to answer."""
ASKED_AGAIN_SECONDS = 600.0
"""After which an index that did not answer is asked again."""
_SERVER_ERRORS = 500


def answers(index: str, folder: Path) -> bool:
    """Return whether an index answers; False, too, for one that did not a short time ago.

    Args:
        index: its address.
        folder: keeps an empty file for each index that did not answer.
    """
    note = folder / f".silent-{sha256(index.encode()).hexdigest()[:12]}"
    with suppress(OSError):
        if 0 <= time.time() - note.stat().st_mtime < ASKED_AGAIN_SECONDS:
            return False
    import requests

    try:
        with requests.head(index, timeout=SECONDS, allow_redirects=True) as answer:
            is_there = answer.status_code < _SERVER_ERRORS
    except requests.RequestException:
        is_there = False
    with suppress(OSError):  # without the note it is asked again
        if is_there:
            note.unlink(missing_ok=True)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            note.touch()
    return is_there
