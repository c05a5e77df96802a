"""What engines, drivers and CUDA say when a GPU cannot be had, and what it means: rows of ``gpu_errors.csv``."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CSV_FILE = Path(__file__).with_suffix(".csv")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuError:
    """One of the well-known failures.

    Attributes:
        sign: what is in the message, in whatever case.
        failure: the class of a cell that ends with it.
        sentence: what it means; ``fix`` is what mends it.
        source: where it was seen, and ``status`` how far that was checked.
    """

    sign: str
    failure: str
    sentence: str
    fix: str
    source: str
    status: str


@cache
def gpu_errors() -> tuple[GpuError, ...]:
    """Return all that are known, those with the more telling signs first."""
    with CSV_FILE.open(encoding="utf-8", newline="") as rows:
        return tuple(GpuError(failure=row.pop("class"), **row) for row in csv.DictReader(rows))


def known_gpu_error(text: str) -> GpuError | None:
    """Return the first trouble whose sign a text has.

    >>> known_gpu_error("CUDA error: no kernel image is available for execution on the device").failure
    'arch'
    """
    lowered = text.lower()
    return next((error for error in gpu_errors() if error.sign.lower() in lowered), None)
