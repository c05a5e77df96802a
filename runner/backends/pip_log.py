"""What pip prints while it installs, reduced to downloads and installations."""

import re
from collections.abc import Iterable, Iterator

_DOWNLOADING = re.compile(
    r"^\s*Downloading (?:\S*/)?(?P<name>[^\s/]+?)-(?P<version>\d[^-\s]*?)(?:-\S*|\.tar\.gz|\.zip)? "
    r"\((?P<size>[\d.]+) ?(?P<unit>[kMG]B)\)"
)
_INSTALLING = re.compile(r"^Installing collected packages: (.*)")
_BUILDING = re.compile(r"^\s*Building wheel for (\S+) .*started")
_LOGGING_ERROR = "--- Logging error ---"
_END_OF_LOGGING_ERROR = "Arguments: "
_HINTS = (
    ("No space left on device", "free space on the disk of the cache folder, then give the same command again"),
    ("DO NOT MATCH THE HASHES", "the packages changed since they were locked: make the lock again with `runner lock`"),
    ("No matching distribution", "the package index did not answer, or no longer has a wheel for this Python"),
)


def pip_progress(line: str) -> str | None:
    """Return the progress that a line of pip shows, None if it shows none; files below a megabyte are none.

    >>> pip_progress("  Downloading numpy-2.4.0-cp311-cp311-manylinux_2_27_x86_64.whl (16.8 MB)")
    'downloading numpy 2.4.0, 16.8 MB'
    >>> pip_progress("Collecting numpy==2.4.0 (from -r lock.txt (line 3))")
    """
    if load := _DOWNLOADING.match(line):
        size = f"{load['size']} {load['unit']}"
        return None if load["unit"] == "kB" else f"downloading {load['name']} {load['version']}, {size}"
    if packages := _INSTALLING.match(line):
        count = packages[1].count(",") + 1
        return f"installing {count} package{'s' * (count > 1)}"
    if wheel := _BUILDING.match(line):
        return f"building {wheel[1]} from source"
    return None


def pip_hint(text: str) -> str | None:
    """Return what to do about an installation whose log has this text; None where nothing is known."""
    return next((advice for sign, advice in _HINTS if sign in text), None)


def without_logging_errors(lines: Iterable[str]) -> Iterator[str]:
    """Give the lines of pip without the traces that Python prints where pip cannot write its log file.

    Where a disk is full, hundreds of these lines follow the error that says so. The format is that of
    ``logging.Handler.handleError``.
    """
    in_trace = False
    for line in lines:
        in_trace = in_trace or line.startswith(_LOGGING_ERROR)
        if not in_trace:
            yield line
        in_trace = in_trace and not line.startswith(_END_OF_LOGGING_ERROR)
