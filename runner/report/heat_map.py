"""The heat map of a run: tests by releases, each cell the speed-up against the oldest measured release."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.analysis.releases import Release
from runner.report import wording
from runner.report.compared_rows import ComparedRow, fields_in_order

MAX_TESTS = 60
"""Tests that the map shows by themselves; of more, it shows a row for each workload."""
SATURATION = math.log(8)
"""The size of a change at which a colour is full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapCell:
    """A cell of the map.

    Attributes:
        text: ``7.9x`` for faster, ``1.14x`` with an arrow down for slower.
        anchor: the row that it links to; empty for several tests.
        word: the verdict in words.
        depth: 0 for no change to 1 for a factor of 8 or more.
        questioned: whether a serious quality issue puts it into question.
        title: the cell in words.
    """

    text: str
    anchor: str
    word: str
    depth: float
    questioned: bool
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRow:
    """A row of the map: a test, or all tests of a workload."""

    test: str
    detail: str
    cells: tuple[MapCell | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """The map: the ids and names of the columns with what each is compared with, and rows by field of application."""

    environments: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    groups: tuple[tuple[str, tuple[MapRow, ...]], ...]


def heat_map(rows: Sequence[ComparedRow], names: Mapping[str, Release]) -> HeatMap | None:
    """Return the map of the rows that have a ratio; None without one."""
    rows = [each for each in rows if each.row.ratio is not None]
    if not rows:
        return None
    order = list(names)
    environments = sorted({each.row.environment for each in rows}, key=order.index if names else None)
    bases = {each.row.environment: each.base for each in rows}
    own_names = {each.row.environment: each.other for each in rows}
    tests = {(each.test, each.api) for each in rows}
    grouped = _by_test(rows, environments) if len(tests) <= MAX_TESTS else _by_workload(rows, environments)
    return HeatMap(
        environments=tuple(environments),
        columns=tuple(
            (names[each].name if each in names else own_names[each], f"against {bases[each]}") for each in environments
        ),
        groups=grouped,
    )


def _by_test(rows: Sequence[ComparedRow], environments: Sequence[str]) -> tuple[tuple[str, tuple[MapRow, ...]], ...]:
    groups = []
    for title, of_field in fields_in_order(rows):
        tests: dict[tuple[str, str], dict[str, ComparedRow]] = {}
        for each in of_field:
            tests.setdefault((each.test, each.api), {})[each.row.environment] = each
        map_rows = (
            MapRow(
                test=test,
                detail=", ".join(filter(None, (api, next(iter(by_environment.values())).description))),
                cells=tuple(_cell(by_environment.get(environment)) for environment in environments),
            )
            for (test, api), by_environment in tests.items()
        )
        groups.append((title, tuple(map_rows)))
    return tuple(groups)


def _by_workload(
    rows: Sequence[ComparedRow], environments: Sequence[str]
) -> tuple[tuple[str, tuple[MapRow, ...]], ...]:
    groups = []
    for title, of_field in fields_in_order(rows):
        workloads: dict[str, list[ComparedRow]] = {}
        for each in of_field:
            workloads.setdefault(each.row.workload, []).append(each)
        map_rows = (
            MapRow(
                test=workload,
                detail=f"{len({each.test for each in of_workload})} tests",
                cells=tuple(
                    _mean([each for each in of_workload if each.row.environment == name]) for name in environments
                ),
            )
            for workload, of_workload in workloads.items()
        )
        groups.append((title, tuple(map_rows)))
    return tuple(groups)


def _cell(each: ComparedRow | None) -> MapCell | None:
    if each is None or each.row.ratio is None:
        return None
    return MapCell(
        text=_text(each.row.ratio),
        anchor=each.anchor,
        word=each.word,
        depth=_depth(each.row.ratio),
        questioned=bool(each.serious),
        title=f"{each.change}, {each.word}",
    )


def _mean(rows: Sequence[ComparedRow]) -> MapCell | None:
    """Return the geometric mean of some rows; it is striped unless all rows are decided for the same side."""
    logs = [math.log(each.row.ratio) for each in rows if each.row.ratio]
    if not logs:
        return None
    ratio = math.exp(sum(logs) / len(logs))
    words = {each.word for each in rows}
    return MapCell(
        text=_text(ratio),
        anchor="",
        word=words.pop() if len(words) == 1 else "can't tell",
        depth=_depth(ratio),
        questioned=False,
        title=f"{wording.speedup(ratio)}, geometric mean of {len(logs)} tests",
    )


def _text(ratio: float) -> str:
    return f"{wording.factor(ratio)}{' ↓' if wording.speedup(ratio).endswith('slower') else ''}"


def _depth(ratio: float) -> float:
    return min(1.0, abs(math.log(ratio)) / SATURATION)
