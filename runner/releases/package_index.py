"""The versions of a package that the package index has as wheels for an interpreter: what ``pip index versions`` lists.

pip has the settings of this machine: mirrors, proxies and credentials. It is the runner's, or one that uv starts.
"""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable

from uv import find_uv_bin

from runner.core.text import REASON_LENGTH, printable, without_credentials

SECONDS = 120.0
_LISTED = re.compile(r"^Available versions: (.*)$", re.MULTILINE)
_VERSION = re.compile(r"[0-9][0-9A-Za-z.!+_-]{0,99}")
ANY_PATCH = 99
"""The patch release that is asked for. pip reads 3.6 as 3.6.0, and packages ask for "3.6.1 or later"."""

Lister = Callable[[str, str, str], tuple[tuple[str, ...], str]]
"""Package, minor version of Python, and an index of nightly builds or nothing -> versions, and why there are none."""


def versions(package: str, python: str, nightly: str = "") -> tuple[tuple[str, ...], str]:
    """Return the versions with a wheel for this platform and an interpreter, in pip's order, and why there are none.

    Args:
        package: its name on the index.
        python: minor version of the interpreter, ``3.6``; it need not be installed.
        nightly: list pre-releases, too: of the index with this address, or of the default one for ``default``.
    """
    command = [*_pip(), "index", "versions", package, "--python-version", f"{python}.{ANY_PATCH}"]
    command += ["--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
    command += [*(["--pre"] if nightly else []), *(["--index-url", nightly] if "://" in nightly else [])]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
            cwd=os.sep,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return (), printable(str(error), REASON_LENGTH)
    match = _LISTED.search(done.stdout)
    if done.returncode or match is None:
        last = next((line for line in reversed(done.stderr.splitlines()) if "ERROR" in line), "pip lists none")
        return (), printable(without_credentials(last.removeprefix("ERROR: ")), REASON_LENGTH)
    return tuple(word for word in match[1].split(", ") if _VERSION.fullmatch(word)), ""


def _pip() -> list[str]:
    """Return the command that starts pip."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    return [os.fspath(find_uv_bin()), "tool", "run", "--quiet", "pip"]
