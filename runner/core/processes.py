"""Which process made something, so that another can tell whether it still runs."""

import os
import socket
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_FIELDS = 4


def identity() -> str:
    """Return host, boot, process id and start time of this process: process ids are used again."""
    return ":".join((socket.gethostname(), boot(), str(os.getpid()), started(os.getpid())))


def is_gone(text: str) -> bool:
    """Return True if an identity is that of a process of this host and boot that is gone.

    Nothing is known of other hosts, nor of a text that is no identity. What follows the four parts does not count.
    """
    fields = text.split(":")
    if len(fields) < _FIELDS or not fields[2].isdecimal():
        return False
    host, of_boot, pid, its_start = fields[:_FIELDS]
    if (host, of_boot) != (socket.gethostname(), boot()):
        return False
    return its_start != started(int(pid)) and not _is_hidden(int(pid))


def _is_hidden(pid: int) -> bool:
    """Return whether a process exists and /proc, mounted with ``hidepid``, does not show it to this user."""
    if started(pid):
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def boot() -> str:
    """Return the id of this boot; ``-`` where the kernel does not say."""
    try:
        return _BOOT.read_text("ascii").strip()
    except OSError:
        return "-"


def started(pid: int) -> str:
    """Return when a process started, in ticks since boot; empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[19]
    except (OSError, UnicodeDecodeError):
        return ""
