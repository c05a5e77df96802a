"""Explain the error messages of container engines, drivers and CUDA about GPUs: the rows of ``gpu_errors.csv``."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CSV_FILE = Path(__file__).with_suffix(".csv")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGpuError:
    """A well-known error.

    Attributes:
        sign: text that its messages contain; case does not matter.
        failure: the failure class of a cell that ends with it.
        sentence: what it means.
        fix: what the user can do about it.
        source: where it was reported.
        status: how far the row was checked.
    """

    sign: str
    failure: str
    sentence: str
    fix: str
    source: str
    status: str


@cache
def gpu_errors() -> tuple[KnownGpuError, ...]:
    """Return every known error, those with more specific signs first."""
    with CSV_FILE.open(encoding="utf-8", newline="") as rows:
        return tuple(KnownGpuError(failure=row.pop("class"), **row) for row in csv.DictReader(rows))


def known_gpu_error(text: str) -> KnownGpuError | None:
    """Return the first known error whose sign a text contains; None if there is none.

    >>> known_gpu_error("CUDA error: no kernel image is available for execution on the device").failure
    'arch'
    """
    lowered = text.lower()
    return next((error for error in gpu_errors() if error.sign.lower() in lowered), None)
