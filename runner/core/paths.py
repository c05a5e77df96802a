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
DEFAULT_MATRIX = Path("matrix.yaml")
"""What stands for the nearest matrix file, where ``--matrix`` names no other."""
DEFAULT_REPORTS = Path("reports")
"""The folder that holds the runs, relative to the working folder, where ``--reports`` names no other."""


_PACKAGE = Path(__file__).parents[1]


def packaged_folder() -> Path:
    """Return the folder of the matrix, Dockerfiles, locks and examples that come with the program.

    A wheel has them in the package; in a checkout they are its top-level files.
    """
    inside = _PACKAGE / "defaults"
    return inside if inside.is_dir() else _PACKAGE.parent


def find_matrix(named: Path) -> Path:
    """Return the matrix file that a command reads.

    Args:
        named: a path; DEFAULT_MATRIX stands for the nearest one, from this folder up to the root of its Git repository,
            and without one for that of the program. Of the folders above, a file of another user does not count: he
            could have made the repository.
    """
    if named != DEFAULT_MATRIX or os.path.lexists(named):  # also where it is a link that leads nowhere
        return named
    try:
        here = Path.cwd()
    except OSError:  # the folder was removed
        return packaged_folder() / DEFAULT_MATRIX
    folders = (here, *here.parents)
    root = next((index for index, folder in enumerate(folders) if os.path.lexists(folder / ".git")), 0)
    above = (folder / DEFAULT_MATRIX for folder in folders[1 : root + 1])
    return next(filter(_is_ours, above), packaged_folder() / DEFAULT_MATRIX)


def _is_ours(path: Path) -> bool:
    """Return whether a path is a regular file, and it, its folder and a link at its place are of this user or root.

    Dockerfiles and locks lie beside the link, or in the folder: whoever has these decides what is built.
    """
    try:
        target, link, folder = path.stat(), path.lstat(), path.parent.stat()
    except OSError:
        return False
    ours = {os.geteuid(), *TRUSTED}
    return stat.S_ISREG(target.st_mode) and {target.st_uid, link.st_uid, folder.st_uid} <= ours


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
