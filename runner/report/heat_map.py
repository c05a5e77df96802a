"""The heat maps of a run: tests by releases, each cell the speed-up against the base of its comparison."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from runner.analysis.releases import EnvironmentRelease
from runner.core.grouping import grouped
from runner.report import wording
from runner.report.compared_rows import ComparedRow, in_order
from runner.report.formatting import counted

MAX_TESTS = 60
"""Tests of a map that have a row each; a larger one has a row for each workload."""
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
    """The map of one comparison.

    Attributes:
        base: what every cell is compared with.
        environments: the ids of the columns; ``columns`` their names.
        rows: by case, phase and API.
        device_name: the kind of device, if there are several; otherwise empty.
    """

    base: str
    environments: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[MapRow, ...]
    device_name: str = ""


def heat_maps(rows: Sequence[ComparedRow], names: Mapping[str, EnvironmentRelease]) -> list[HeatMap]:
    """Return a map for each kind of device and base that rows with a ratio are compared with, in the order of the plan.

    Args:
        rows: of all comparisons.
        names: environment -> its release, in the order of the plan.
    """
    order = {name: position for position, name in enumerate(names)}
    ordered = sorted(rows, key=lambda each: order.get(each.row.base.environment, len(order)))
    by_base = grouped(((each.device_name, each.base), each) for each in ordered if each.row.ratio is not None)
    return [replace(_heat_map(base, of, order), device_name=kind) for (kind, base), of in by_base.items()]


def _heat_map(base: str, rows: Sequence[ComparedRow], order: Mapping[str, int]) -> HeatMap:
    names = {each.row.environment: each.other for each in rows}
    environments = sorted(names, key=lambda name: order.get(name, len(order)))
    tests = grouped(((each.test, each.api), each) for each in in_order(rows))
    if len(tests) <= MAX_TESTS:
        map_rows = [_test(of_test, environments) for of_test in tests.values()]
    else:
        workloads = grouped((each.row.workload, each) for each in in_order(rows))
        map_rows = [_workload(name, group, environments) for name, group in workloads.items()]
    return HeatMap(
        base=base,
        environments=tuple(environments),
        columns=tuple(names[name] for name in environments),
        rows=tuple(map_rows),
    )


def _test(rows: Sequence[ComparedRow], environments: Sequence[str]) -> MapRow:
    """Return the row of a test."""
    by_environment = {each.row.environment: each for each in rows}
    first = rows[0]
    return MapRow(
        test=first.test,
        detail=", ".join(filter(None, (first.api, first.description))),
        cells=tuple(_cell(by_environment.get(name)) for name in environments),
    )


def _workload(name: str, rows: Sequence[ComparedRow], environments: Sequence[str]) -> MapRow:
    """Return the row of all tests of a workload."""
    of_environment = grouped((each.row.environment, each) for each in rows)
    return MapRow(
        test=name,
        detail=counted(len({(each.test, each.api) for each in rows}), "test"),
        cells=tuple(_mean(of_environment.get(other, ())) for other in environments),
    )


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
    spread = wording.speedup_spread(math.exp(min(logs)), math.exp(max(logs)))
    return MapCell(
        text=_text(ratio),
        anchor="",
        word=words.pop() if len(words) == 1 else "can't tell",
        depth=_depth(ratio),
        questioned=False,
        title=f"{wording.speedup(ratio)}, geometric mean of {counted(len(logs), 'test')}; single tests {spread}",
    )


def _text(ratio: float) -> str:
    return f"{wording.amount(ratio)}{' ↓' if wording.speedup(ratio).endswith('slower') else ''}"


def _depth(ratio: float) -> float:
    return min(1.0, abs(math.log(ratio)) / SATURATION)
