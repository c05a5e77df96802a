"""The locks of a run: ``locks/<environment>.txt``, what each environment was installed from."""

from pathlib import Path

from runner.core.files import write_whole
from runner.core.model import Provisioned

FOLDER = "locks"


def stored_lock(run: Path, environment: str) -> Path:
    """Return the path of the lock of an environment in a run folder."""
    return run / FOLDER / f"{environment}.txt"


def write_lock(run: Path, ready: Provisioned) -> None:
    """Write the lock of an environment into a run folder; one without a lock has none."""
    if ready.lock:
        path = stored_lock(run, ready.environment)
        path.parent.mkdir(exist_ok=True)
        write_whole(path, ready.lock)
