"""Is this release of a framework faster or slower than that one, on this device, for these networks?"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

__version__ = "0.1.0"
__all__ = ["__version__", "load_samples"]


def load_samples(path: str | Path) -> "DataFrame":
    """Return every sample of a run as a tidy table, one row for each measured iteration.

    Args:
        path: a run folder, a reports folder (its newest run), or a file that ``runner export`` wrote.

    Returns:
        The columns run, cell, environment, framework, release, implementation, workload, case, phase, precision,
        backend, device, round, iteration, seconds.

    Raises:
        RecordError: the run cannot be read, or was written by a newer program.
    """
    from runner.analysis.dataset import load_samples as load

    return load(Path(path))
