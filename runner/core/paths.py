"""Where this program keeps what can be made again."""

from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return where this program keeps what can be made again: ``XDG_CACHE_HOME``/matrix-runner."""
    asked = environ.get("XDG_CACHE_HOME", "")
    home = asked if asked.startswith("/") else str(Path(environ.get("HOME", "~")).expanduser() / ".cache")
    return Path(home) / "matrix-runner"
