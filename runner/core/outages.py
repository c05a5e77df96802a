"""Whether a failure to get something passes: the outage of an index, a registry, a network or a disk.

Such a failure says nothing about what was to be got, so nothing stores it as a fact about a release: a search stops,
and a run tries again when it is resumed. That requirements have no solution, a hash differs or an index lacks a version
stays true, and is stored.
"""

import errno
import re
from pathlib import Path

LASTING_ERRNOS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG})
"""Numbers of OSErrors that the name of a file causes. All others are the state of a disk, a folder or a network."""

SIGNS: tuple[tuple[str, str], ...] = (
    (r"error sending request for url", "uv 0.13: no connection, and one that broke off"),
    (r"HTTP status server error \(5\d\d", "uv 0.13"),
    (r"HTTP status client error \(4(?:01|08|29)", "uv 0.13"),
    (r"returned a 401 Unauthorized error", "uv 0.13, as a hint after `No solution found`"),
    (r"operation timed out|request or response body error|Failed to download distribution due to network", "uv"),
    (r"Max retries exceeded with url", "pip 9 to 26: no connection, a time-out, too many answers of 5xx"),
    (r"HTTP error (?:5\d\d|408|429) while getting", "pip 20 and later"),
    (r"(?:5\d\d Server|4(?:01|08|29) Client) Error: ", "pip, in what it could not fetch; requests"),
    (r"Read timed out|ReadTimeoutError|Connection broken|IncompleteRead|ProtocolError", "urllib3 in pip"),
    (r"incomplete-download|Download failed after|Connection timed out while downloading", "pip 25.1 and later"),
    (r"Connection refused|Connection reset by peer|Connection timed out", "errno"),
    (r"Network is unreachable|No route to host", "errno"),
    (r"Temporary failure in name resolution|Name or service not known|Temporary failure resolving", "libc, apt"),
    (r"No space left on device|Disk quota exceeded|Read-only file system|Input/output error", "errno"),
)
"""Parts of the errors of uv, pip and what they stand on that an outage causes, as patterns, and where each is from."""

_SIGN = re.compile("|".join(pattern for pattern, _ in SIGNS), re.IGNORECASE)
_RETRY = re.compile(r"^\s*WARNING: Retrying")  # pip tries again, and may succeed


def is_outage(text: str) -> bool:
    """Return True where the last lines of a failed command are those of an outage.

    >>> is_outage("error: Connection refused (os error 111)"), is_outage("error: No solution found")
    (True, False)
    """
    return any(_SIGN.search(line) for line in text.splitlines() if not _RETRY.match(line))


def not_fetched(pip_log: Path) -> str:
    """Return the lines of a pip log (``--log``) that say which pages of an index pip did not get, and why.

    Without ``--log``, pip says only that there is no version.
    """
    if not pip_log.is_file():
        return ""
    with pip_log.open(encoding="utf-8", errors="replace") as log:
        return "".join(line.partition(" ")[2] for line in log if "Could not fetch URL" in line)


def is_passing_error(error: OSError) -> bool:
    """Return True where an operation on a file failed for another reason than the file's name."""
    return error.errno not in LASTING_ERRNOS
