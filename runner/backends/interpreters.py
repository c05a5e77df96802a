"""Python interpreters that are already on this machine, by minor version."""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from python_discovery import PythonInfo, iter_interpreters

_MINOR = re.compile(r"[0-9]+\.[0-9]+")
_PROBE = "import ensurepip, venv, sys; print('%d.%d' % sys.version_info[:2])"
_PROBE_SECONDS = 30.0
_OLDEST_OF_UV = (3, 8)  # `uv python list --only-downloads --all-versions`, uv 0.13


@cache
def find(version: str) -> Path | None:
    """Find CPython of a minor version that can make virtual environments; of several, the newest patch release.

    Looked through are ``PATH``, pyenv's versions (``PYENV_ROOT`` or ``~/.pyenv``) and what uv installed. A virtual
    environment counts as the interpreter it was made from. The answer is kept for the life of the process.

    Args:
        version: ``3.6``.

    Returns:
        The interpreter itself, no shim and no link; ``None`` if the machine has none that works.
    """
    environ = dict(os.environ)
    environ["PATH"] = search_path(version, environ, pyenv_root(environ))
    found = iter_interpreters(f"cpython{version}", env=environ, predicate=is_usual)
    for path in by_patch(found):
        if works(path, version):
            return path
    return None


def pyenv_root(environ: Mapping[str, str]) -> Path:
    """Give pyenv's folder, whether or not it is there."""
    return Path(environ.get("PYENV_ROOT") or Path(environ.get("HOME") or Path.home()) / ".pyenv")


def search_path(version: str, environ: Mapping[str, str], root: Path) -> str:
    """Give the ``PATH`` to look through: pyenv's versions first, and no shims.

    A pyenv shim answers for whatever version is active in the current folder, or ends with 127, so the versions'
    own folders stand in for it.

    Raises:
        ValueError: the version is not a minor one.
    """
    if _MINOR.fullmatch(version) is None:
        raise ValueError(f"expected a minor version such as '3.6', got {version!r}")
    releases = sorted((root / "versions").glob(f"{version}.*/bin"))
    usual = [folder for folder in environ.get("PATH", os.defpath).split(os.pathsep) if not is_shims(folder)]
    return os.pathsep.join([*map(str, releases), *usual])


def is_shims(folder: str) -> bool:
    """Tell whether a folder holds a version manager's stand-ins (pyenv, pyenv-virtualenv, asdf, mise)."""
    return Path(folder).name == "shims"


def is_usual(info: PythonInfo) -> bool:
    """Tell whether an interpreter is one that wheels are made for: 64 bits, released, with the lock."""
    return info.architecture == 64 and not info.free_threaded and info.version_info.releaselevel == "final"


def by_patch(found: Iterable[PythonInfo]) -> tuple[Path, ...]:
    """Order interpreters by patch release, the newest first; of equals the one found first."""
    ordered = sorted(found, key=lambda info: info.version_info.micro, reverse=True)
    paths = [Path(info.system_executable or info.executable).resolve() for info in ordered]
    return tuple(dict.fromkeys(paths))


def remedy(version: str) -> str:
    """Return the command that brings a Python of a minor version to this machine."""
    known = tuple(map(int, version.split("."))) >= _OLDEST_OF_UV
    return f"uv python install {version}" if known else f"pyenv install {version}"


def works(interpreter: Path, version: str) -> bool:
    """Tell whether an interpreter runs, is of the version, and has what a virtual environment needs.

    Debian's Python comes without ``ensurepip`` unless ``python3-venv`` is installed.
    """
    command = [os.fspath(interpreter), "-I", "-c", _PROBE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == version
