"""The last good run of every cell on the same device, and which cells look changed since."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.analysis import dataset
from runner.analysis.compare.pairing import Measured, Pair, Side, environment_side
from runner.analysis.compare.verdicts import draft, fact_differences, with_verdicts
from runner.analysis.model import Dataset, Row
from runner.core.errors import RecordError
from runner.core.model import Cell
from runner.core.model.cells import is_twin
from runner.store.journal import Journal
from runner.store.run import Run, runs

LOOK_BACK = 20  # runs that are read at most, of those that hold a cell in question


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """An environment in an earlier run.

    Attributes:
        run: its id.
        side: what the run measured in it.
        digest: what pinned its content then; empty where nobody wrote that down.
        facts: what the run recorded of it.
    """

    run: str
    side: Side
    digest: str
    facts: Mapping[str, Any]


@dataclass(slots=True)
class Earlier:
    """What earlier runs hold of the cells of tonight.

    Attributes:
        formers: cell -> the newest good measurement that tonight's may be compared with.
        refused: cell -> why the newest good one may not be compared, where no other may.
        broken: a cell that failed tonight -> the run that has the newest good record of it.
        notes: runs that could not be read, and why.
        boards: case -> the UUID of the GPU that it was measured on tonight, empty for none.
    """

    formers: dict[Cell, Baseline] = field(default_factory=dict)
    refused: dict[Cell, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    boards: Mapping[str, str] = field(default_factory=dict)


def earlier(
    reports: Path, run: Run, tonight: Dataset, failed: Collection[str], open_: Mapping[str, Collection[str]]
) -> Earlier:
    """Return the last good run of each cell: one that ended, on the same device and backend, before this one.

    Args:
        reports: where runs are kept.
        run: tonight's.
        tonight: what it found.
        failed: ids of the cells that have no good record tonight.
        open_: run -> ids of the cells that its night left open or found slower, which are no good ones.
    """
    found = Earlier(boards=boards(tonight))
    begun = run.journal().begun
    left = measured(tonight)
    failed = [name for name in failed if not is_twin(name.partition("/")[0])]
    read = 0
    for one in runs(reports):
        if not left.keys() - found.formers.keys() or read == LOOK_BACK:
            break
        if one.id == run.id:
            continue
        try:
            read += _look(one, begun, left, found, failed, open_.get(one.id, ()))
        except RecordError as error:
            found.notes.append(f"run {one.id} cannot be read: {error.problems[0].message}")
    found.refused = {cell: why for cell, why in found.refused.items() if cell not in found.formers}
    return found


def measured(results: Dataset) -> dict[Cell, Measured]:
    """Return the good rounds of each cell of a run, without those of A/A pairs."""
    names = dict.fromkeys(results.rounds["environment"].tolist())
    return {
        cell: found
        for name in names
        if not is_twin(name)
        for cell, found in environment_side(results, name).measured.items()
    }


def boards(results: Dataset) -> dict[str, str]:
    """Return the UUID of the GPU that each case was measured on, empty for none: several may share a run."""
    rounds = results.rounds
    names = (rounds["workload"].astype(str) + "/" + rounds["case"].astype(str)).tolist()
    return dict(zip(names, rounds["device_uuid"].astype(str).tolist(), strict=True))


def _look(
    one: Run,
    begun: Mapping[str, Any],
    left: Mapping[Cell, Measured],
    found: Earlier,
    failed: Collection[str],
    open_: Collection[str],
) -> bool:
    """Take what a run has of the cells that are left; say whether its records were read."""
    journal = one.journal()
    if not _comparable(journal, begun):
        return False
    good = {entry.cell for entry in journal.counting() if entry.status == "ok"} - set(open_)
    for name in set(failed) & good:
        found.broken.setdefault(name, one.id)
    wanted = [cell for cell in left if cell.id in good and cell not in found.formers]
    if not wanted:
        return False
    results = dataset.load_dataset(one)
    formers = {name: _former(results, journal, name) for name in {cell.environment for cell in wanted}}
    then = boards(results)
    for cell in wanted:
        former = formers[cell.environment]
        different = fact_differences(former.side.measured[cell], left[cell], f"run {one.id}", "tonight")
        if different:
            found.refused.setdefault(cell, "; ".join(different.values()))
        elif then[cell.case_id] != found.boards[cell.case_id]:
            found.refused.setdefault(cell, f"run {one.id} measured its case on another GPU of the same kind")
        else:
            found.formers[cell] = former
    return True


def _comparable(journal: Journal, begun: Mapping[str, Any]) -> bool:
    """Say whether a run ended, and was measured on the backend of another one, on a device of its, or several."""
    then, now = ({*str(one.get("device")).split(",")} for one in (journal.begun, begun))
    kinds = {str(one.get("device_name")).rpartition(" x ")[2] for one in (journal.begun, begun)}
    same = bool(then & now) and len(kinds) == 1 and journal.begun.get("backend") == begun.get("backend")
    return journal.ended == "done" and same


def _former(results: Dataset, journal: Journal, name: str) -> Baseline:
    return Baseline(
        run=results.run,
        side=environment_side(results, name),
        digest=str(journal.begun.get("digests", {}).get(name, "")),
        facts=results.environments.get(name, {}),
    )


def rows(tonight: Dataset, formers: Mapping[Cell, Baseline], margin: float) -> list[tuple[Cell, Row]]:
    """Return each cell's row against its last good run: of different runs, so by Welch's interval."""
    now = {name: environment_side(tonight, name) for name in {cell.environment for cell in formers}}
    drafts = [draft(former.side, now[cell.environment], Pair(cell, cell)) for cell, former in formers.items()]
    return list(zip(formers, with_verdicts(drafts, margin), strict=True)) if drafts else []


def looks_changed(row: Row, *, same: bool) -> bool:
    """Say whether a row of two runs is worth a second look.

    Where the environment is another one, something did change, and whatever was not shown to be the same is looked at
    again: the second look is strict, and tonight is what later nights are compared with.

    Args:
        row: of two runs.
        same: the environment is the one it was: then the verdict has to be sure.
    """
    return row.verdict in {"slower", "faster"} or (row.verdict == "inconclusive" and not same)


def slowest_first(found: Iterable[tuple[Cell, Row]]) -> Sequence[tuple[Cell, Row]]:
    """Return rows in the order in which they deserve the time."""
    return sorted(found, key=lambda one: -(one[1].ratio or 1.0))
