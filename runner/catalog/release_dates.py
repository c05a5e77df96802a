"""When each release of a framework came out.

``release_dates.csv`` has a row for each release: its framework and version as package indexes have them, the date (a
month where the day is not known), ``status`` (``verified``, or ``unverified`` where nobody has looked it up) and the
``source`` of the date, mostly when its wheel was built.
"""

import csv
import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import NamedTuple

CSV_FILE = Path(__file__).parent / "release_dates.csv"


class ReleaseDate(NamedTuple):
    """The day of a release, or the first day of its month; and whether somebody has looked it up."""

    day: date
    verified: bool


def release_date(framework: str, release: str) -> ReleaseDate | None:
    """Return when a release came out; None if that is not known.

    Args:
        framework: as in matrix.yaml.
        release: its version; a local part such as ``+cpu``, a post release such as ``_2``, and a missing last ``.0``
            make no difference.

    >>> release_date("torch", "2.13.0+cpu").day.isoformat(), release_date("torch", "0.1.12_2").day.isoformat()
    ('2026-07-01', '2017-05-02')
    """
    dates = _dates()
    version = _plain(release)
    return dates.get((framework, version)) or dates.get((framework, f"{version}.0"))


@cache
def _dates() -> Mapping[tuple[str, str], ReleaseDate]:
    with CSV_FILE.open(encoding="utf-8", newline="") as stream:
        return {
            (row["framework"], _plain(row["release"])): ReleaseDate(
                date.fromisoformat(row["date"] if len(row["date"]) > 7 else f"{row['date']}-01"),
                row["status"] == "verified",
            )
            for row in csv.DictReader(stream)
        }


def _plain(release: str) -> str:
    """Return a version without its local part and its post release."""
    return re.sub(r"(_\d+|\.post\d+|\+.*)$", "", release)
