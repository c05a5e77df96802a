"""The baseline of each cell: its last good run on the same device. Which cells differ from it.

A run is a good baseline of a cell where it ended, was measured on the same backend and device, and its own night had no
suspicion about a row of the cell or of its environment, or found it ``same`` or better in turns. Otherwise the older
baseline stays.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from runner.analysis import dataset
from runner.analysis.compare.measured_run import MeasuredRun
from runner.analysis.compare.metric_rounds import is_environment
from runner.analysis.compare.pairing import CellPair, MeasuredCell, Side, environment_side
from runner.analysis.compare.verdicts import draft, fact_differences, host_difference, with_verdicts
from runner.analysis.comparison_model import Row
from runner.analysis.model import Dataset
from runner.core.errors import RecordError
from runner.core.metrics import CHANGES
from runner.core.model import Cell
from runner.core.model.cells import environment_of, is_control
from runner.nights.anchors_file import device_of
from runner.store.journal import Journal
from runner.store.run import Run, runs
from runner.store.started import is_started_here
from runner.watch.accepted import accepted_of

MAX_RUNS_READ = 20  # runs whose records are read, the newest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """An environment in an earlier run.

    Attributes:
        run: its id.
        side: what the run measured in the environment.
        measured: the run, for the values of metrics other than time; None if it has none.
        digest: what pinned the environment's content then; empty where the run did not record it.
        facts: what the run recorded about the environment.
        started_here: this user has started the run in its folder, so that its variables may be set again.
    """

    run: str
    side: Side
    measured: MeasuredRun | None = None
    digest: str
    facts: Mapping[str, Any]
    started_here: bool = False

    @property
    def may_start(self) -> bool:
        """Whether the environment may be started again: with variables of a run that somebody sent, it may not."""
        return self.started_here or not self.facts.get("env")


@dataclass(slots=True)
class Baselines:
    """What earlier runs hold of tonight's cells.

    Attributes:
        by_cell: cell -> the newest good measurement that tonight's may be compared with.
        refused: cell -> why its newest good measurement may not be compared, where there is no other.
        newly_failed: id of a cell that failed tonight -> the run with its newest good record.
        notes: runs that could not be read, and why.
        gpu_of_case: case -> the UUID of the GPU that measured it tonight, empty on a CPU.
    """

    by_cell: dict[Cell, Baseline] = field(default_factory=dict)
    refused: dict[Cell, str] = field(default_factory=dict)
    newly_failed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    gpu_of_case: Mapping[str, str] = field(default_factory=dict)


def find_baselines(
    reports: Path,
    run: Run,
    tonight: Dataset,
    failed: Collection[str],
    open_cells: Mapping[str, Collection[str]],
    accepted: Mapping[str, str] = MappingProxyType({}),
) -> Baselines:
    """Return the baseline of each cell that was measured tonight.

    Args:
        reports: the folder that holds the runs.
        run: tonight's.
        tonight: the results of that run.
        failed: ids of the cells without a good record tonight.
        open_cells: see ``EarlierNights``.
        accepted: id of a cell -> the run that a person accepted; it is good whatever its night found.
    """
    baselines = Baselines(gpu_of_case=gpu_of_case(tonight))
    header = run.journal().header
    cells = measured_cells(tonight)
    failed = [name for name in failed if not is_control(environment_of(name))]
    runs_read = 0
    for earlier in runs(reports):
        if not cells.keys() - baselines.by_cell.keys() or runs_read == MAX_RUNS_READ:
            break
        if earlier.id == run.id:
            continue
        try:
            journal = earlier.journal()
            if same_circumstances(journal, header):
                good = good_cells(earlier.id, journal, open_cells, accepted)
                runs_read += _add_run(earlier, journal, good, cells, baselines, failed)
        except RecordError as error:
            baselines.notes.append(f"run {earlier.id} cannot be read: {error.problems[0].message}")
    baselines.refused = {cell: why for cell, why in baselines.refused.items() if cell not in baselines.by_cell}
    return baselines


def good_cells(
    run: str, journal: Journal, open_cells: Mapping[str, Collection[str]], accepted: Mapping[str, str]
) -> frozenset[str]:
    """Return the ids of the cells of a run that later nights may be compared with.

    They have a good record, and the night of the run left neither them nor their environments open, or a person has
    accepted the run.

    Args:
        run: its id.
        journal: its journal.
        open_cells: see ``EarlierNights``.
        accepted: id of a cell -> the run that a person accepted.
    """
    still_open = {name for name in open_cells.get(run, ()) if run not in accepted_of(name, accepted)}
    open_environments = {environment_of(name) for name in still_open if is_environment(name)}
    good = (entry.cell for entry in journal.counting() if entry.status == "ok")
    return frozenset(cell for cell in good if cell not in still_open and environment_of(cell) not in open_environments)


def measured_cells(results: Dataset) -> dict[Cell, MeasuredCell]:
    """Return the good rounds of each cell of a run, without those of A/A pairs."""
    names = dict.fromkeys(results.rounds["environment"].tolist())
    sides = (environment_side(results, name) for name in names if not is_control(name))
    return {cell: measured for of_environment in sides for cell, measured in of_environment.measured.items()}


def gpu_of_case(results: Dataset) -> dict[str, str]:
    """Return the UUID of the GPU that measured each case, empty on a CPU; several GPUs may share a run."""
    rounds = results.rounds
    names = (rounds["workload"].astype(str) + "/" + rounds["case"].astype(str)).tolist()
    return dict(zip(names, rounds["device_uuid"].astype(str).tolist(), strict=True))


def _add_run(
    earlier: Run,
    journal: Journal,
    good: Collection[str],
    cells: Mapping[Cell, MeasuredCell],
    baselines: Baselines,
    failed: Collection[str],
) -> bool:
    """Add the good cells of an earlier run of those without a baseline; return True where its records were read."""
    for name in set(failed) & set(good):
        baselines.newly_failed.setdefault(name, earlier.id)
    without_baseline = [cell for cell in cells if cell.id in good and cell not in baselines.by_cell]
    if not without_baseline:
        return False
    results = dataset.load_dataset(earlier)
    baselines.notes += [f"run {earlier.id}: {sentence}" for sentence in results.warnings]
    environments = {cell.environment for cell in without_baseline}
    measured = MeasuredRun(results)
    baseline_of = {name: side_of_run(earlier, measured, journal, name) for name in environments}
    gpus = gpu_of_case(results)
    for cell in without_baseline:
        baseline = baseline_of[cell.environment]
        if cell not in baseline.side.measured:  # its records are damaged and left out
            continue
        different = fact_differences(baseline.side.measured[cell], cells[cell], f"run {earlier.id}", "tonight")
        different.update(host_difference(baseline.side.measured[cell], cells[cell], f"run {earlier.id}", "tonight"))
        if different:
            baselines.refused.setdefault(cell, "; ".join(different.values()))
        elif gpus[cell.case_id] != baselines.gpu_of_case[cell.case_id]:
            baselines.refused.setdefault(cell, f"run {earlier.id} measured its case on another GPU of the same kind")
        else:
            baselines.by_cell[cell] = baseline
    return True


def same_circumstances(journal: Journal, header: Mapping[str, Any]) -> bool:
    """Return True where a run ended and was measured on the same backend and kind of device, one GPU in common."""
    then, tonight = ({*str(fields.get("device")).split(",")} for fields in (journal.header, header))
    same_kind = device_of(journal.header) == device_of(header)
    return journal.ended == "done" and bool(then & tonight) and same_kind


def side_of_run(run: Run, measured: MeasuredRun, journal: Journal, environment: str) -> Baseline:
    """Return what a run, whose results and journal these are, measured in an environment."""
    results = measured.dataset
    return Baseline(
        run=results.run,
        side=environment_side(results, environment),
        measured=measured,
        digest=str(journal.header.get("digests", {}).get(environment, "")),
        facts=results.environments.get(environment, {}),
        started_here=is_started_here(run),
    )


def compare_with_baselines(
    tonight: Dataset, baselines: Mapping[Cell, Baseline], margin: float
) -> list[tuple[Cell, Row]]:
    """Return each cell's row against its baseline; the rounds are of two runs, so the interval is Welch's."""
    sides = {name: environment_side(tonight, name) for name in {cell.environment for cell in baselines}}
    drafts = [
        draft(baseline.side, sides[cell.environment], CellPair(cell, cell)) for cell, baseline in baselines.items()
    ]
    return list(zip(baselines, with_verdicts(drafts, margin, across_runs=True), strict=True)) if drafts else []


def looks_changed(row: Row, *, same_environment: bool) -> bool:
    """Return True where the row of two runs deserves a confirmation in turns.

    Where the environment changed, every cell that was not shown to be the same is measured again: two runs say little.
    Where it did not change, the verdict has to be sure.
    """
    return row.verdict in CHANGES or (row.verdict == "inconclusive" and not same_environment)
