"""Reads run folders as tables: every sample, every round, every failure."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from runner.analysis.model import MIN_ROUNDS, Dataset, Planned
from runner.analysis.tables import TableBuilder
from runner.core.errors import DamagedRunWarning, Problem, RecordError
from runner.core.model import Cell
from runner.stats import intervals
from runner.store import samples
from runner.store.damage import DamagedRecord
from runner.store.documents import PLAN
from runner.store.journal import Journal
from runner.store.run import Run, runs


def load_dataset(folder: Run | Path) -> Dataset:
    """Return one run as tables; each record is read once.

    Records and lines of the journal that are damaged are left out; a ``DamagedRunWarning`` says which.

    Raises:
        RecordError: a file of the run cannot be read.
    """
    run = folder if isinstance(folder, Run) else Run.open(folder)
    machine, environments = run.machine(), run.environments()
    damaged: list[DamagedRecord] = []
    journal, builder = run.journal(), TableBuilder(machine, environments)
    for record in run.quick_records(journal, damaged.append):
        builder.add(record)
    tables = builder.tables()
    set_aside = _set_aside(run, journal, TableBuilder(machine, environments), damaged)
    sentences = run.warnings(journal, damaged)
    for sentence in sentences:
        warnings.warn(sentence, DamagedRunWarning, stacklevel=2)
    plan = run.plan()
    used = {len(cpus) for cpus in tables.rounds["cpus"] if isinstance(cpus, list)}
    if used:  # a step that is not pinned may use all of them
        machine = {**machine, "processors_used": " or ".join(map(str, sorted(used)))}
    return Dataset(
        run=run.id,
        samples=tables.samples,
        rounds=tables.rounds,
        failures=tables.failures,
        plan=_with_skips(_planned_cells(plan, run), journal),
        machine=machine,
        environments=environments,
        canary=journal.canary,
        looks=_looks(plan),
        warnings=sentences,
        provenance=_provenance(plan, journal.header),
        journal=journal,
        settings={name: value for name, value in plan.items() if name not in {"version", "cells"}},
        set_aside=set_aside,
    )


def all_samples(dataset: Dataset) -> pd.DataFrame:
    """Return the samples of a run with those of disturbed rounds that were measured again, which have the mark."""
    if dataset.set_aside is None:
        return dataset.samples
    together = pd.concat([dataset.samples, dataset.set_aside], ignore_index=True)
    return together.astype(dict.fromkeys((*samples.TEXT_COLUMNS, "turns_with"), "category"))


def _set_aside(run: Run, journal: Journal, builder: TableBuilder, damaged: list[DamagedRecord]) -> pd.DataFrame | None:
    """Return the samples of the records that are marked as disturbed and do not count; None without any."""
    entries = journal.set_aside()
    if not entries:
        return None
    for record in run.quick_records(journal, damaged.append, entries):
        builder.add(record)
    return builder.tables().samples.assign(**{samples.DISTURBED: True})


def load_samples(path: str | Path) -> pd.DataFrame:
    """Return the samples of a run folder, of the newest run in a reports folder, or of an exported file.

    Args:
        path: a folder with ``plan.json``, a folder with ``runs/``, or a ``.parquet`` or ``.csv`` of ``runner export``.

    Returns:
        the columns ``run, cell, environment, framework, release, implementation, workload, case, phase, precision,
        backend, device`` (categories), ``round``, ``iteration`` (from 0 in each round), ``seconds``, ``turn`` (from 0
        in each round), ``turns_with`` (a category; equal for cells that took turns), ``lead`` (``samples.COLUMNS``),
        and ``disturbed`` (true for rounds that were measured again, and do not count).

    Raises:
        RecordError: there is no such file or run, or it cannot be read.
    """
    source = Path(path)
    if source.suffix in {".parquet", ".csv"} and not source.is_dir():
        return samples.read(source)
    if (source / PLAN).exists():
        return all_samples(load_dataset(source))
    newest = runs(source)
    if not newest:
        raise RecordError(Problem(f"there is no run in {source}", hint="start one with `runner run`"))
    return all_samples(load_dataset(newest[0]))


def export(run: Run | Path, path: Path) -> int:
    """Write the samples of a run to a ``.parquet`` or ``.csv`` file, atomically; return their number.

    Raises:
        UsageError: the file name has another suffix.
    """
    frame = all_samples(load_dataset(run))
    samples.write(frame, path)
    return len(frame)


def _provenance(plan: Mapping[str, Any], header: Mapping[str, Any]) -> dict[str, Any]:
    """Return what it takes to repeat a run: settings of the plan, and the header without its bookkeeping."""
    settings = {name: value for name, value in plan.items() if name not in {"version", "cells"}}
    kept = {name: value for name, value in header.items() if name not in {"version", "event", "measurement", "plan"}}
    return {**settings, **kept}


def _looks(plan: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the numbers of rounds at which verdicts were taken; older runs had no extra rounds."""
    rounds = max(1, int(plan.get("rounds", MIN_ROUNDS)))
    return intervals.looks(rounds, max(1, int(plan.get("max_rounds", rounds))))


def _with_skips(cells: Sequence[Planned], journal: Journal) -> tuple[Planned, ...]:
    """Return the planned cells; those without a record whose case the budget had no time for are skipped."""
    recorded = {entry.cell for entry in journal.entries}
    return tuple(
        replace(planned, verdict="skip", code="over-budget", reason=journal.skipped[planned.cell.case_id])
        if planned.verdict == "run" and planned.cell.case_id in journal.skipped and planned.cell.id not in recorded
        else planned
        for planned in cells
    )


def _planned_cells(plan: Mapping[str, Any], run: Run) -> tuple[Planned, ...]:
    """Return the cells of the plan.

    Raises:
        RecordError: a cell lacks a key that ``runner plan`` writes.
    """
    try:
        return tuple(
            Planned(
                cell=Cell.parse(cell["id"]),
                kind=cell.get("kind") or "",
                framework=cell.get("framework") or "",
                device=cell.get("device") or "",
                verdict="run" if cell["verdict"] == "run" else "skip",
                code=cell.get("code") or "",
                reason=cell.get("reason") or "",
            )
            for cell in plan["cells"]
        )
    except (KeyError, TypeError) as error:
        raise RecordError(Problem(f"{run.path / PLAN}: a test of the plan lacks {error}")) from error
