"""Runs pip and uv, which ask package indexes: for a limited time, and with limited memory.

Both read without a limit what an index answers, and a matrix of somebody else may name the index.
"""

import os
import resource
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

MAX_BYTES = 4 << 30
"""The memory of each program (RLIMIT_DATA, getrlimit(2))."""
MEMORY_SIGN = "MemoryError"
"""Of pip."""


def run_client(command: Sequence[str], text: str, seconds: float) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end; whatever it has started ends with it.

    Args:
        command: its command line.
        text: what it reads from stdin.
        seconds: how long it may take.

    Raises:
        OSError: it cannot be started.
        TimeoutExpired: it took longer.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        cwd=os.sep,  # a uv.toml or a pip.py of the user's folder is none of theirs
        start_new_session=True,
    ) as process:
        try:
            with suppress(OSError, ValueError):  # it has ended, or has a lower limit
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))
            out, error = process.communicate(text, seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, out, error)


def had_no_memory(done: "subprocess.CompletedProcess[str]") -> bool:
    """Return whether a program ended because it had no memory left: pip raises, and uv is ended by a signal."""
    return done.returncode < 0 or (done.returncode > 0 and MEMORY_SIGN in done.stderr)
