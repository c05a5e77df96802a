"""A run folder as an entry of the history: the median of each cell, its ratio to the run's base, and a night's changes.

The numbers are those of the run's report: ``analysis.compare.comparison`` compares, and ``analysis.time_intervals`` has
the intervals. A/A twins are left out, and so are environments as they were (``torch-2.x@RUN``): they are only bases.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from runner.analysis.analyse import Analysis
from runner.analysis.boards import boards_of
from runner.analysis.comparison_model import Row
from runner.analysis.model import Dataset
from runner.analysis.of_run import split
from runner.analysis.quality.run import measured_elsewhere
from runner.analysis.time_intervals import Ends, time_intervals
from runner.core.errors import Problem, RecordError
from runner.core.metrics import OTHERS, TIME
from runner.core.model import Cell
from runner.core.model.cells import is_control
from runner.core.text import path_text
from runner.history.entries import BoardEntry, CellEntry, ChangeEntry, RunEntry
from runner.nights.night import NightChange
from runner.nights.night_files import night_of, read_night, run_kind
from runner.store.run import Run

RUN_ID = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-", re.ASCII)


def run_entry(analysis: Analysis, run: Run) -> RunEntry:
    """Return a run as an entry of the history.

    Args:
        analysis: the run.
        run: its folder, in ``<reports>/runs`` or below ``<reports>/nights``.

    Raises:
        RecordError: the night of the run cannot be read, or nothing says when it started.
    """
    results = analysis.dataset
    header = results.provenance
    boards = _boards(results)
    kind = run_kind(run)
    return RunEntry(
        run=run.id,
        at=_started(run, header),
        kind=kind,
        **device_of(results),
        backend=_text(header, "backend"),
        harness=_text(header, "harness"),
        source=path_text(run.path),
        cells=tuple(replace(cell, board=boards.get(cell.cell)) for cell in _cells(analysis, TIME)),
        metrics=tuple(
            replace(cell, board=boards.get(cell.cell)) for metric in OTHERS for cell in _cells(analysis, metric.name)
        ),
        changes=tuple(map(change_entry, read_night(night_of(run)).changes)) if kind == "night" else (),
    )


def device_of(results: Dataset) -> dict[str, str]:
    """Return ``device``, ``device_name``, ``host`` and ``driver`` of a run as the history has them."""
    return _devices(_boards(results).values()) if measured_elsewhere(results) else _device(results)


def _device(results: Dataset) -> dict[str, str]:
    """Return the device, host and driver of a run that its own machine measured."""
    header = {name: _text(results.provenance, name) for name in ("device", "device_name", "driver")}
    return {**header, "host": _text(results.machine, "host")}


def _devices(boards: Iterable[BoardEntry]) -> dict[str, str]:
    """Return the devices, hosts and drivers of a run that other hosts measured; ``3 x H200`` for three of a kind."""
    every = sorted(set(boards), key=lambda board: (board.device_name, board.host, board.device))
    kinds = list(dict.fromkeys(board.device_name for board in every))
    names = {
        name: ", ".join(dict.fromkeys(filter(None, (getattr(board, name) for board in every))))
        for name in ("host", "driver")
    }
    count = f"{len(every)} x " if len(kinds) == 1 and len(every) > 1 else ""
    device = ",".join(dict.fromkeys(board.device for board in every))
    return {**names, "device": device, "device_name": count + " and ".join(kinds)}


def _boards(results: Dataset) -> dict[str, BoardEntry]:
    """Return id of a cell -> its board; none if the run's own machine measured all cells on one board."""
    rounds, by_cell = results.rounds, dict[str, dict[BoardEntry, None]]()
    drivers = rounds["driver"].tolist()
    for cell, board, driver in zip(rounds["cell"].tolist(), boards_of(rounds), drivers, strict=True):
        entry = BoardEntry(device=board.uuid or "cpu", device_name=board.device_name, host=board.host, driver=driver)
        by_cell.setdefault(cell, {})[entry] = None
    if len({board for boards in by_cell.values() for board in boards}) < 2 and not measured_elsewhere(results):
        return {}
    return {
        cell: next(iter(boards)) if len(boards) == 1 else BoardEntry(**_devices(boards))
        for cell, boards in by_cell.items()
    }


def change_entry(change: NightChange) -> ChangeEntry:
    """Return a change of a night as the history has it: its ratio is that in turns where that was measured."""
    ratio = change.again if change.again and change.again.ratio else change
    return ChangeEntry(
        cell=change.cell,
        metric=change.metric,
        before=change.before,
        against=change.against,
        state=change.state,
        verdict=change.again.verdict if change.again else "",
        ratio=ratio.ratio,
        ratio_low=ratio.ratio_low,
        ratio_high=ratio.ratio_high,
        rounds=ratio.rounds,
        confirmed_in=change.confirmed_in,
        digest=change.digest,
    )


def _cells(analysis: Analysis, metric: str) -> Iterator[CellEntry]:
    """Yield the cells with a good record that has a value of a metric, in the order measured."""
    results = analysis.measured_as(metric).dataset
    grouped = results.rounds.assign(cell=results.rounds["cell"].astype(str)).groupby("cell", sort=False)["seconds"]
    medians, counts = grouped.median().to_dict(), grouped.size().to_dict()
    intervals = time_intervals(results)
    rows = {
        cell: row for each in analysis.comparisons for cell, row in each.rows_by_cell(metric).items() if _has_base(row)
    }
    for name, seconds in medians.items():
        cell = Cell.parse(str(name))
        if not is_control(cell.environment) and not split(cell.environment)[1]:
            entry = _cell(cell, float(seconds), int(counts[name]), intervals.get(cell), rows.get(cell), analysis)
            yield replace(entry, metric=metric)


def _has_base(row: Row) -> bool:
    """Return whether both sides of a row were measured, and it is no A/A pair."""
    return None not in row.values and not is_control(row.other.environment)


def _digest(analysis: Analysis, environment: str) -> str:
    """Return what pins the content of an environment."""
    digests = analysis.dataset.provenance.get("digests") or {}
    facts = analysis.dataset.environments.get(environment, {})
    return str(digests.get(environment) or facts.get("digest") or "")


def _cell(
    cell: Cell, seconds: float, rounds: int, interval: Ends | None, row: Row | None, analysis: Analysis
) -> CellEntry:
    low, high = interval or (None, None)
    entry = CellEntry(
        cell=cell.id,
        release=analysis.releases[cell.environment].version,
        digest=_digest(analysis, cell.environment),
        seconds=seconds,
        seconds_low=low,
        seconds_high=high,
        rounds=rounds,
    )
    if row is None:
        return entry
    return replace(
        entry,
        base=row.base.id,
        base_release=analysis.releases[row.base.environment].version,
        base_digest=_digest(analysis, row.base.environment),
        ratio=row.ratio,
        ratio_low=row.ratio_low,
        ratio_high=row.ratio_high,
        verdict=row.verdict,
    )


def _started(run: Run, header: Mapping[str, Any]) -> str:
    """Return when a run started, in UTC: by its header, else by its name."""
    at = header.get("at")
    if isinstance(at, str) and at:
        return at
    match = RUN_ID.match(run.id)
    if match is None:
        raise RecordError(Problem(f"nothing in {run.path} says when the run started"))
    return "{}-{}-{}T{}:{}:{}Z".format(*match.groups())


def _text(values: Mapping[str, Any], name: str) -> str:
    return str(values.get(name) or "")
