"""Figures that others have published, in the terms of this project, to compare measurements with.

``figures.csv`` has a row for each figure, in the order of the tables of its source:

    source          a name in ``SOURCES``, which has the citation and what was timed
    environment     the nearest environment, such as ``torch-0.4``; the shipped matrix does not have all of them
    framework       as in the matrix; ``release`` is written as in the source
    implementation  slug, with its ``kind``; ``name`` is what the source calls it
    case, phase     as in ``runner.catalog.cases``; ``precision`` as in the matrix
    seconds         of one step; ``spread`` is a standard deviation in seconds, empty if the source has none
    value, unit     as printed: a step is ``us/example`` times the batch, ``ms/batch``, ``ms``, or 35 * 20 words over
                    ``words/s``
    device, system  the hardware and the software of the measurement
    note            how the program differs from the aligned case, beyond what ``timed`` of the source says

The figures are those of the cited documents and repositories; ``docs/published.md`` says what was left out.
"""

import csv
import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from runner.catalog.published.sources import SOURCES, PublishedSource
from runner.core.errors import Problem, UsageError

__all__ = [
    "PHASE_SUFFIX",
    "PREFIX",
    "SOURCES",
    "Figure",
    "PublishedSource",
    "figures",
    "figures_by_side",
    "find_source",
    "is_published",
    "select_sides",
]

PREFIX = "published:"
PHASE_SUFFIX = "+published"
"""The suffix of phases that are measured in the published protocol, as the original programs did."""
CSV_FILE = Path(__file__).parent / "figures.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A published figure; its fields are the columns of ``figures.csv``. ``spread`` is None if the source has none."""

    source: str
    environment: str
    framework: str
    release: str
    implementation: str
    kind: str
    name: str
    case: str
    phase: str
    precision: str
    seconds: float
    spread: float | None
    value: str
    unit: str
    device: str
    system: str
    note: str

    @property
    def side(self) -> str:
        """The name of its side in a comparison, such as ``published:braun2018/torch-0.4``."""
        return f"{PREFIX}{self.source}/{self.environment}"


@cache
def figures() -> tuple[Figure, ...]:
    """Return every figure, in the order of the file."""
    with CSV_FILE.open(encoding="utf-8", newline="") as stream:
        return tuple(_figure(row) for row in csv.DictReader(stream))


@cache
def figures_by_side() -> Mapping[str, tuple[Figure, ...]]:
    """Return side -> its figures, for each environment of each source; a side is ``published:source/environment``."""
    by_side: dict[str, tuple[Figure, ...]] = {}
    for figure in figures():
        by_side[figure.side] = (*by_side.get(figure.side, ()), figure)
    return by_side


def is_published(name: str) -> bool:
    """Return True if a name stands for published figures: if it begins with ``published:``."""
    return name.startswith(PREFIX)


def select_sides(name: str) -> tuple[str, ...]:
    """Return the sides that ``published:source/environment`` matches, in the order of the figures.

    Both parts may be globs; a source alone stands for all its environments.

    Raises:
        UsageError: no side matches; the hint has the nearest name and all names.
    """
    source_glob, _, environment = name.removeprefix(PREFIX).partition("/")
    sources = [source for source in SOURCES if fnmatchcase(source, source_glob)]
    if not sources:
        raise _unknown(f"published source {source_glob!r}", source_glob, SOURCES)
    of_source = [side for side in figures_by_side() if _source_and_environment(side)[0] in sources]
    matches = tuple(side for side in of_source if fnmatchcase(_source_and_environment(side)[1], environment or "*"))
    if not matches:
        environments = tuple(dict.fromkeys(_source_and_environment(side)[1] for side in of_source))
        raise _unknown(f"environment {environment!r} in published {source_glob}", environment, environments)
    return matches


def find_source(name: str) -> PublishedSource:
    """Return a source by its name.

    Raises:
        UsageError: there is no such source; the hint has the nearest name and all names.
    """
    if name not in SOURCES:
        raise _unknown(f"published source {name!r}", name, SOURCES)
    return SOURCES[name]


def _figure(row: Mapping[str, str]) -> Figure:
    spread = float(row["spread"]) if row["spread"] else None
    return Figure(**{**row, "seconds": float(row["seconds"]), "spread": spread})  # type: ignore[arg-type]


def _source_and_environment(side: str) -> tuple[str, str]:
    """Return the two parts of a side's name."""
    name, _, environment = side.removeprefix(PREFIX).partition("/")
    return name, environment


def _unknown(what: str, name: str, known: Collection[str]) -> UsageError:
    near = difflib.get_close_matches(name, known, n=1)
    listed = f"there are {', '.join(known)}"
    return UsageError(Problem(f"unknown {what}", hint=f"did you mean {near[0]!r}? {listed}" if near else listed))
