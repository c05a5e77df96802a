"""Figures that others published, in this project's words, to lay measurements beside.

``figures.csv`` has a row for each figure, in the order of its source's tables:

    source          a name in ``SOURCES``, which has the citation and what was timed
    environment     the environment that it comes nearest to: ``torch-0.4``; not every one is in the shipped matrix
    framework       as in the matrix; ``release`` as the source has it
    implementation  slug, with its ``kind``; ``name`` is what the source calls it
    case, phase     as in ``runner.catalog.cases``; ``precision`` as in the matrix
    seconds         of one step; ``spread`` a standard deviation in seconds, empty where the source has none
    value, unit     as printed: ``us/example`` times the batch, ``ms/batch``, ``ms``, or 35 * 20 words over ``words/s``
    device, system  what it was measured on
    note            in what the program differs from the aligned case, beyond what the source's ``timed`` says

The figures are those of the cited documents and repositories; ``docs/published.md`` says what was left out.
"""

import csv
import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from runner.catalog.published.sources import SOURCES, Source
from runner.core.errors import Problem, UsageError

__all__ = [
    "PHASE_SUFFIX",
    "PREFIX",
    "SOURCES",
    "Figure",
    "Source",
    "figures",
    "figures_by_side",
    "find_source",
    "is_published",
    "select_sides",
]

PREFIX = "published:"
PHASE_SUFFIX = "+published"
"""What follows the phase of a cell that is measured as the original programs did."""
FILE = Path(__file__).parent / "figures.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One published figure; the fields are the columns of ``figures.csv``, ``spread`` None where there is none."""

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
        """What ``compare`` calls it, ``published:braun2018/torch-0.4``."""
        return f"{PREFIX}{self.source}/{self.environment}"


@cache
def figures() -> tuple[Figure, ...]:
    """Return every figure, in the order of the file."""
    with FILE.open(encoding="utf-8", newline="") as stream:
        return tuple(_figure(row) for row in csv.DictReader(stream))


@cache
def figures_by_side() -> Mapping[str, tuple[Figure, ...]]:
    """Return the figures of each environment of each source, by its ``published:source/environment``."""
    by_side: dict[str, tuple[Figure, ...]] = {}
    for figure in figures():
        by_side[figure.side] = (*by_side.get(figure.side, ()), figure)
    return by_side


def is_published(name: str) -> bool:
    """Say whether a name is meant for a published figure."""
    return name.startswith(PREFIX)


def select_sides(name: str) -> tuple[str, ...]:
    """Return the sides that ``published:source/environment`` names, in the order of the figures.

    Both parts may be globs; a source alone stands for all its environments.

    Raises:
        UsageError: nothing is called so; with the nearest name, and what there is.
    """
    source_glob, _, environment = name.removeprefix(PREFIX).partition("/")
    sources = [source for source in SOURCES if fnmatchcase(source, source_glob)]
    if not sources:
        raise _unknown(f"published source {source_glob!r}", source_glob, SOURCES)
    of_source = [side for side in figures_by_side() if _parts(side)[0] in sources]
    matches = tuple(side for side in of_source if fnmatchcase(_parts(side)[1], environment or "*"))
    if not matches:
        environments = tuple(dict.fromkeys(_parts(side)[1] for side in of_source))
        raise _unknown(f"environment {environment!r} in published {source_glob}", environment, environments)
    return matches


def find_source(name: str) -> Source:
    """Return a source by its name.

    Raises:
        UsageError: there is none; with the nearest name, and what there is.
    """
    if name not in SOURCES:
        raise _unknown(f"published source {name!r}", name, SOURCES)
    return SOURCES[name]


def _figure(row: Mapping[str, str]) -> Figure:
    spread = float(row["spread"]) if row["spread"] else None
    return Figure(**{**row, "seconds": float(row["seconds"]), "spread": spread})  # type: ignore[arg-type]


def _parts(side: str) -> tuple[str, str]:
    """Return the source and the environment of a side."""
    name, _, environment = side.removeprefix(PREFIX).partition("/")
    return name, environment


def _unknown(what: str, name: str, known: Collection[str]) -> UsageError:
    near = difflib.get_close_matches(name, known, n=1)
    listed = f"there are {', '.join(known)}"
    return UsageError(Problem(f"unknown {what}", hint=f"did you mean {near[0]!r}? {listed}" if near else listed))
