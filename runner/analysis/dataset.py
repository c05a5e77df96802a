"""Run folders as tables: every sample, every round, every failure."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from runner.analysis import statistics
from runner.analysis.model import Dataset, Planned
from runner.analysis.tables import TableBuilder
from runner.core.errors import Problem, RecordError
from runner.core.model import Cell
from runner.store import samples
from runner.store.documents import PLAN
from runner.store.run import Run, runs


def merge(folders: Iterable[Run | Path]) -> pd.DataFrame:
    """Return a row for each measured iteration of the good records, with exactly ``runner.store.samples.COLUMNS``.

    The words are categories: a million rows take some 40 MB.

    Args:
        folders: runs, or the folders of runs.
    """
    found = [load_dataset(folder).samples for folder in folders]
    return _joined(found) if found else TableBuilder().tables().samples


def load_dataset(folder: Run | Path) -> Dataset:
    """Return one run as tables, each record read once.

    Raises:
        RecordError: a file of the run cannot be read.
    """
    run = folder if isinstance(folder, Run) else Run.open(folder)
    machine, environments = run.machine(), run.environments()
    journal = run.journal()
    found = TableBuilder(machine, environments)
    for record in run.records(journal):
        found.add(record)
    tables, plan = found.tables(), run.plan()
    used = {len(one) for one in tables.rounds["cpus"] if isinstance(one, list)}
    if used:  # a step that is not kept to its cores may use all of them
        machine = {**machine, "processors_used": " or ".join(map(str, sorted(used)))}
    return Dataset(
        run=run.id,
        samples=tables.samples,
        rounds=tables.rounds,
        failures=tables.failures,
        plan=_planned(plan, run),
        machine=machine,
        environments=environments,
        canary=journal.canary,
        looks=_looks(plan),
        warning=journal.warning,
    )


def load_samples(path: str | Path) -> pd.DataFrame:
    """Return the samples of a run folder, of the newest run in a reports folder, or of an exported file.

    Args:
        path: a folder with ``plan.json``, a folder with ``runs/``, or a ``.parquet`` or ``.csv`` of ``runner export``.

    Returns:
        the columns ``run, cell, environment, framework, release, implementation, workload, case, phase, precision,
        backend, device`` (categories), ``round``, ``iteration`` (from 0 in each round) and ``seconds``.

    Raises:
        RecordError: there is nothing of the kind, or it cannot be read.
    """
    place = Path(path)
    if place.suffix in {".parquet", ".csv"} and not place.is_dir():
        return samples.read(place)
    if (place / PLAN).exists():
        return merge([place])
    newest = runs(place)
    if not newest:
        raise RecordError(Problem(f"{place} holds no run", hint="`runner run` makes one"))
    return merge(newest[:1])


def export(run: Run | Path, path: Path) -> None:
    """Write the samples of a run to a ``.parquet`` or ``.csv`` file, whole.

    Raises:
        UsageError: the name ends in neither.
    """
    samples.write(merge([run]), path)


def _joined(found: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return tables below each other, their words still categories."""
    if len(found) == 1:
        return found[0]
    columns: dict[str, Any] = {}
    for name in found[0].columns:
        parts = [frame[name] for frame in found]
        if isinstance(parts[0].dtype, pd.CategoricalDtype):
            columns[name] = pd.api.types.union_categoricals(parts)
        else:
            columns[name] = pd.concat(parts, ignore_index=True)
    return pd.DataFrame(columns)


def _looks(plan: Mapping[str, Any]) -> tuple[int, ...]:
    """Return when verdicts were taken; older runs had their rounds and no more."""
    rounds = int(plan.get("rounds", statistics.MIN_ROUNDS))
    return statistics.looks(rounds, int(plan.get("max_rounds", rounds)))


def _planned(plan: Mapping[str, Any], run: Run) -> tuple[Planned, ...]:
    """Return the cells of the plan.

    Raises:
        RecordError: one of them is not as ``runner plan`` writes it.
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
        raise RecordError(Problem(f"{run.path / PLAN}: a cell of the plan lacks {error}")) from error
