"""Run folders as tables: every sample, every round, every failure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from runner import frames, stats
from runner.comparison import COMPARABLE, Planned, Results
from runner.documents import PLAN
from runner.doubts import FACTS as DOUBTFUL
from runner.errors import Problem, RecordError
from runner.model import Record
from runner.store import Run, parse_cell, runs

FACTS = (*COMPARABLE, "digest", "server")
ROUND_COLUMNS = (
    *frames.WORDS,
    *(name for name in FACTS if name not in frames.WORDS),
    "kind",
    "round",
    "attempt",
    "compile_seconds",
    "loss_error",
    "gradient_error",
)
_WORDS = tuple(name for name in ROUND_COLUMNS if name in frames.WORDS or name in FACTS or name == "kind")


def merge(folders: Iterable[Run | Path]) -> pd.DataFrame:
    """Return a row for each measured iteration of the good records, with exactly ``runner.frames.COLUMNS``.

    The words are categories: a million rows take some 40 MB.

    Args:
        folders: runs, or the folders of runs.
    """
    found = [results(folder).samples for folder in folders]
    return _joined(found) if found else _samples(_table([]), [])


def rounds(folders: Iterable[Run | Path]) -> pd.DataFrame:
    """Return a row for each good record: ``ROUND_COLUMNS``, ``seconds`` (the median) and ``iterations``."""
    found = [results(folder).rounds for folder in folders]
    return _joined(found) if found else _rounds(_table([]), [], [])


def failures(folders: Iterable[Run | Path]) -> pd.DataFrame:
    """Return a row for each record that is not good: ``ROUND_COLUMNS``, ``failure`` (its class) and ``reason``."""
    found = [results(folder).failures for folder in folders]
    return _joined(found) if found else _failures([], [])


def results(folder: Run | Path) -> Results:
    """Return one run as tables, each record read once.

    Raises:
        RecordError: a file of the run cannot be read.
    """
    run = folder if isinstance(folder, Run) else Run.open(folder)
    machine, environments = run.machine(), run.environments()
    good: list[dict[str, Any]] = []
    bad: list[dict[str, Any]] = []
    times: list[NDArray[np.float64]] = []
    ends: list[tuple[str | None, str | None]] = []
    journal = run.journal()
    for record in run.records(journal):
        row = _row(record, machine, environments.get(record.cell.environment, {}))
        if record.status == "ok":
            good.append(row)
            times.append(np.array(record.seconds, dtype=np.float64))
        else:
            bad.append(row)
            ends.append((record.failure, record.reason))
    table = _table(good)
    return Results(
        run=run.id,
        samples=_samples(table, times),
        rounds=_rounds(table, times, good),
        failures=_failures(bad, ends),
        plan=_planned(run),
        machine=machine,
        environments=environments,
        canary=journal.canary,
        looks=_looks(run.plan()),
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
        return frames.read(place)
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
    frames.write(merge([run]), path)


def _row(record: Record, machine: Mapping[str, Any], environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a record; a fact that it lacks is what the run says of the environment or machine."""
    facts, cell = record.facts, record.cell
    device = facts.get("device", "")
    return {
        **dict.fromkeys(ROUND_COLUMNS),
        **facts,
        "run": record.run,
        "cell": cell.id,
        "environment": cell.environment,
        "framework": facts.get("framework") or environment.get("framework", ""),
        "release": facts.get("release") or environment.get("release") or facts.get("version", ""),
        "implementation": cell.implementation,
        "workload": cell.workload,
        "case": cell.case,
        "phase": cell.phase,
        "precision": cell.precision,
        "effective_precision": facts.get("precision", cell.precision),
        "device": device,
        "device_name": facts.get("device_name") or (machine.get("cpu") if device == "cpu" else device),
        "round": record.round,
        "attempt": record.attempt,
        "compile_seconds": record.compile_seconds,
    }


def _word(value: object) -> str:
    """Return a fact as text; a missing one is empty."""
    return "" if value is None else str(value) if isinstance(value, (str, int)) else json.dumps(value, sort_keys=True)


def _table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for name in ROUND_COLUMNS:
        values = [row[name] for row in rows]
        if name in _WORDS:
            columns[name] = pd.Categorical([value if type(value) is str else _word(value) for value in values])
        else:
            columns[name] = np.array(values, dtype=np.int64 if name in {"round", "attempt"} else np.float64)
    return pd.DataFrame(columns)


def _samples(table: pd.DataFrame, times: Sequence[NDArray[np.float64]]) -> pd.DataFrame:
    counts = np.array([len(seconds) for seconds in times], dtype=np.int64)
    rows = np.repeat(np.arange(len(counts)), counts)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    columns: dict[str, Any] = {}
    for name in frames.WORDS:
        words = table[name].array
        columns[name] = words.take(rows)
    columns["round"] = table["round"].to_numpy()[rows]
    columns["iteration"] = np.arange(len(rows)) - first
    columns["seconds"] = np.concatenate([np.empty(0), *times])
    return pd.DataFrame(columns)


def _rounds(
    table: pd.DataFrame, times: Sequence[NDArray[np.float64]], rows: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """Return the table with the figures of each round, and what doubts are seen by, None where that is not recorded."""
    medians = np.array(
        [median(seconds.tolist()) for seconds in times], dtype=np.float64
    )  # numpy.median takes ten times as long for 34 values
    counts = np.array([len(seconds) for seconds in times], dtype=np.int64)
    facts = {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in DOUBTFUL}
    return table.assign(seconds=medians, iterations=counts, **facts)


def _failures(rows: Sequence[Mapping[str, Any]], ends: Sequence[tuple[str | None, str | None]]) -> pd.DataFrame:
    kinds = pd.Categorical([_word(failure) for failure, _ in ends])
    return _table(rows).assign(failure=kinds, reason=[reason or "" for _, reason in ends])


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
    rounds = int(plan.get("rounds", stats.FEWEST))
    return stats.looks(rounds, int(plan.get("max_rounds", rounds)))


def _planned(run: Run) -> tuple[Planned, ...]:
    """Return the cells of the plan.

    Raises:
        RecordError: one of them is not as ``runner plan`` writes it.
    """
    try:
        return tuple(
            Planned(
                cell=parse_cell(cell["id"]),
                kind=cell.get("kind") or "",
                framework=cell.get("framework") or "",
                device=cell.get("device") or "",
                verdict="run" if cell["verdict"] == "run" else "skip",
                code=cell.get("code") or "",
                reason=cell.get("reason") or "",
            )
            for cell in run.plan()["cells"]
        )
    except (KeyError, TypeError) as error:
        raise RecordError(Problem(f"{run.path / PLAN}: a cell of the plan lacks {error}")) from error
