"""Read the CSV files of this folder, which all have the columns ``source``, ``status`` and ``unverified``.

``source`` names the origin of a row, ``status`` how far it was checked, and ``unverified`` the columns that nobody has
checked; a reason that rests on one of these ends in "(unverified)".
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.catalog.hardware.versions import Capability, parse_capability

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareFact:
    """What every row has.

    Attributes:
        source: where the row is from.
        status: how far it was checked.
        unverified: the columns that nobody has checked.
    """

    source: str
    status: str
    unverified: frozenset[str] = field(default_factory=frozenset)


def rows(name: str) -> Iterator[Mapping[str, str]]:
    """Yield the rows of a CSV file of this folder by its name."""
    with (FOLDER / name).open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)


def fact(row: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns of a row that every fact has, as arguments of ``HardwareFact``."""
    return {"source": row["source"], "status": row["status"], "unverified": frozenset(words(row["unverified"]))}


def words(text: str) -> tuple[str, ...]:
    """Return the items of a list that is separated by semicolons; none for an empty text."""
    return tuple(text.split(";")) if text else ()


def capabilities(text: str) -> tuple[Capability, ...]:
    """Return the compute capabilities of a list that is separated by semicolons."""
    return tuple(map(parse_capability, words(text)))
