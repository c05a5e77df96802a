"""The Python interpreters of this machine, by minor version."""

import logging
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from python_discovery import DiskCache, PythonInfo, iter_interpreters

from runner.core.paths import cache_folder

logging.getLogger("python_discovery").setLevel(logging.ERROR)  # it warns of folders that it does not write to
FOLDER = "interpreters"
"""The subfolder of the cache for facts about interpreters. They are read again when an interpreter has changed."""
_MINOR = re.compile(r"[0-9]+\.[0-9]+")
_PROBE = "import ensurepip, venv, sys; print('%d.%d' % sys.version_info[:2])"
_PROBE_SECONDS = 30.0
_OLDEST_OF_UV = (3, 8)  # `uv python list --only-downloads --all-versions`, uv 0.13


@cache
def find(version: str) -> Path | None:
    """Find CPython of a minor version that can make virtual environments; of several, the newest patch release.

    It searches ``PATH``, pyenv's versions (``PYENV_ROOT`` or ``~/.pyenv``) and what uv installed. A virtual environment
    counts as the interpreter that it was made from. The result is cached until the process ends.

    Args:
        version: ``3.6``.

    Returns:
        The path of the interpreter, which is no shim and no link; None if the machine has none that works.
    """
    environ = dict(os.environ)
    environ["PATH"] = search_path(version, environ, pyenv_root(environ))
    kept = DiskCache(cache_folder(environ) / FOLDER)
    candidates = iter_interpreters(f"cpython{version}", cache=kept, env=environ, predicate=is_usual)
    for path in by_patch(candidates):
        if works(path, version):
            return path
    return None


def pyenv_root(environ: Mapping[str, str]) -> Path:
    """Return pyenv's folder, which need not exist."""
    return Path(environ.get("PYENV_ROOT") or Path(environ.get("HOME") or Path.home()) / ".pyenv")


def search_path(version: str, environ: Mapping[str, str], root: Path) -> str:
    """Return the ``PATH`` to search: pyenv's versions first, and no shims.

    A pyenv shim starts the version that is active in the current folder, or exits with 127; so the folders of the
    versions take its place.

    Raises:
        ValueError: the version is not a minor one.
    """
    if _MINOR.fullmatch(version) is None:
        raise ValueError(f"expected a minor version such as '3.6', got {version!r}")
    releases = sorted((root / "versions").glob(f"{version}.*/bin"))
    usual = [folder for folder in environ.get("PATH", os.defpath).split(os.pathsep) if not is_shims(folder)]
    return os.pathsep.join([*map(str, releases), *usual])


def is_shims(folder: str) -> bool:
    """Return True if a folder holds the shims of a version manager (pyenv, pyenv-virtualenv, asdf, mise)."""
    return Path(folder).name == "shims"


def is_usual(info: PythonInfo) -> bool:
    """Return True if wheels are made for an interpreter: 64 bits, a release, with the global interpreter lock."""
    return info.architecture == 64 and not info.free_threaded and info.version_info.releaselevel == "final"


def by_patch(candidates: Iterable[PythonInfo]) -> tuple[Path, ...]:
    """Return the paths of interpreters, the newest patch release first; equal releases stay in order."""
    ordered = sorted(candidates, key=lambda info: info.version_info.micro, reverse=True)
    paths = [Path(info.system_executable or info.executable).resolve() for info in ordered]
    return tuple(dict.fromkeys(paths))


def remedy(version: str) -> str:
    """Return the command that installs a Python of a minor version."""
    has_uv = tuple(map(int, version.split("."))) >= _OLDEST_OF_UV
    return f"uv python install {version}" if has_uv else f"pyenv install {version}"


def works(interpreter: Path, version: str) -> bool:
    """Return True if an interpreter runs, has the version, and can make virtual environments.

    Debian's Python comes without ``ensurepip`` unless ``python3-venv`` is installed.
    """
    command = [os.fspath(interpreter), "-I", "-c", _PROBE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == version
