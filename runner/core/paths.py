"""Where this program keeps runs, and what can be rebuilt."""

from collections.abc import Mapping
from pathlib import Path

DEFAULT_REPORTS = Path("reports")
"""The folder that holds the runs, relative to the working folder, where ``--reports`` names no other."""


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of what can be rebuilt: ``XDG_CACHE_HOME``/matrix-runner, or below ``~/.cache``."""
    configured = environ.get("XDG_CACHE_HOME", "")
    home = configured if configured.startswith("/") else str(Path(environ.get("HOME", "~")).expanduser() / ".cache")
    return Path(home) / "matrix-runner"
