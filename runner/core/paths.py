"""Where this program keeps runs, and what can be rebuilt."""

import os
import pwd
import stat
from collections.abc import Mapping
from pathlib import Path

from runner.core.errors import Problem, UsageError

PROGRAM = "matrix-runner"

TRUSTED = frozenset({0})
"""Users whose links are followed: root."""
DEFAULT_REPORTS = Path("reports")
"""The folder that holds the runs, relative to the working folder, where ``--reports`` names no other."""


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of what can be rebuilt: ``XDG_CACHE_HOME``/matrix-runner, or below ``~/.cache``.

    Raises:
        UsageError: no variable names it, and this user has no home folder.
    """
    configured = environ.get("XDG_CACHE_HOME", "")
    return (Path(configured) if configured.startswith("/") else home(environ, "XDG_CACHE_HOME") / ".cache") / PROGRAM


def home(environ: Mapping[str, str], variable: str) -> Path:
    """Return this user's home folder: ``HOME``, or what the system's list of users says.

    Args:
        environ: the environment.
        variable: what can be set instead, for the hint of the error.

    Raises:
        UsageError: there is neither.
    """
    if environ.get("HOME"):
        return Path(environ["HOME"])
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        hint = f"set {variable} to a folder that you may write to, or HOME"
        raise UsageError(Problem(f"user {os.geteuid()} of this machine has no home folder", hint=hint)) from None


def refuse_foreign_links(*paths: Path) -> None:
    """Refuse to write through a link that another user has made: it says where a file of this user goes.

    A folder of reports may be shared. Links of this user, of root and of the owner of the folder are followed, as the
    kernel does in a folder with the sticky bit (``fs.protected_symlinks``, proc(5)).

    Raises:
        UsageError: one of the paths is such a link.
    """
    for path in paths:
        try:
            status, trusted = path.lstat(), {os.geteuid(), _owner(path.parent), *TRUSTED}
        except OSError:
            continue  # whoever writes it says why that is not possible
        if stat.S_ISLNK(status.st_mode) and status.st_uid not in trusted:
            hint = "remove it, or use a folder of yours: --reports, or --history"
            raise UsageError(Problem(f"{path} is a link that another user has made", hint=hint))


def _owner(folder: Path) -> int:
    return folder.stat().st_uid


def shortened(path: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return a path with ``~`` in place of the home folder, so that texts for others do not name this user.

    >>> shortened("/home/ann/venv/bin/python", {"HOME": "/home/ann"}), shortened("/opt/python", {"HOME": "/"})
    ('~/venv/bin/python', '/opt/python')
    """
    folder = environ.get("HOME", "").rstrip("/")
    return f"~{path.removeprefix(folder)}" if folder and path.startswith(f"{folder}/") else path


def expanded(path: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return a path that ``shortened`` shortened, with the home folder of this user again.

    >>> expanded("~/venv/bin/python", {"HOME": "/home/ann"}), expanded("~", {"HOME": "/home/ann"})
    ('/home/ann/venv/bin/python', '~')
    """
    folder = environ.get("HOME", "").rstrip("/")
    return f"{folder}{path[1:]}" if folder and path.startswith("~/") else path
