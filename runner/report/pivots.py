"""The comparisons of a large run as one table for each workload: a row for each test, a column for each release."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from runner.core.grouping import grouped
from runner.report.compared_rows import ComparedRow, in_order


class PivotRow(NamedTuple):
    """A test and API: the base's time, and a comparison for each column; None where there is none."""

    test: str
    api: str
    base_time: str
    columns: tuple[ComparedRow | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pivot:
    """The tests of a workload in the releases of a framework.

    Attributes:
        workload: its name.
        base: the release that the others are compared with.
        releases: the releases of the columns after that of the base.
        rows: in the order of reports.
        folded: how many comparisons are in this table alone.
        device_name: the kind of device, if there are several; otherwise empty.
    """

    workload: str
    base: str
    releases: tuple[str, ...]
    rows: tuple[PivotRow, ...]
    folded: int
    device_name: str = ""


def pivots(rows: Sequence[ComparedRow], shown: Collection[str], environments: Sequence[str]) -> list[Pivot]:
    """Return a table for each kind of device, workload and base, of the tests with a comparison that is not shown yet.

    Args:
        rows: all comparisons.
        shown: the anchors of the comparisons that the page shows in full.
        environments: in the order of the columns.
    """
    columns = {name: position for position, name in enumerate(environments)}
    groups = grouped(((each.device_name, each.row.workload, each.base), each) for each in in_order(rows))
    tables = [
        replace(_pivot(workload, base, group, shown, columns), device_name=kind)
        for (kind, workload, base), group in groups.items()
    ]
    return [table for table in tables if table.folded]


def _pivot(
    workload: str, base: str, group: Sequence[ComparedRow], shown: Collection[str], columns: Mapping[str, int]
) -> Pivot:
    in_columns = sorted(group, key=lambda each: columns.get(each.row.environment, len(columns)))
    releases = tuple(dict.fromkeys(each.other for each in in_columns))
    tests: dict[tuple[str, str], dict[str, ComparedRow]] = {}
    for each in group:
        tests.setdefault((each.test, each.api), {})[each.other] = each
    rows = tuple(
        PivotRow(test, api, next(iter(by_release.values())).base_time, tuple(map(by_release.get, releases)))
        for (test, api), by_release in tests.items()
        if any(each.anchor not in shown for each in by_release.values())
    )
    folded = sum(each.anchor not in shown for each in group)
    return Pivot(workload=workload, base=base, releases=releases, rows=rows, folded=folded)
