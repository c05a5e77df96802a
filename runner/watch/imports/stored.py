"""Imported figures as files: ``reports/imports/figures/RUN.json``, which a rebuild of the history reads again."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from runner.core.errors import Problem, RecordError, RunnerError
from runner.history.entries import RunEntry
from runner.session.results import warn_unreadable
from runner.store.documents import MAX_BYTES, newest, read_value, save
from runner.store.run import runs
from runner.watch.imports.figures import MAX_CELLS
from runner.watch.imports.run_folders import FOLDER, entry_of

FIGURES = "figures"
"""The folder of the files, and their kind in ``documents.UPGRADES``."""


@dataclass(frozen=True, slots=True)
class FiguresFile:
    """The file of a run that was imported."""

    run: RunEntry


FIGURES_FILE = TypeAdapter(FiguresFile)


def store(entry: RunEntry, reports: Path) -> Path:
    """Write an entry, replacing the file as a whole; return its path."""
    path = reports / FOLDER / FIGURES / f"{entry.run}.json"
    save(path, json.dumps({"version": newest(FIGURES), "run": asdict(entry)}, indent=1, allow_nan=False) + "\n")
    return path


def stored_entries(reports: Path, margin: float) -> Iterator[RunEntry]:
    """Yield everything that was imported into a reports folder, as entries; a warning names each that cannot be read.

    Args:
        reports: the folder that holds the runs of this machine.
        margin: the change that counts as none.
    """
    for path in sorted((reports / FOLDER / FIGURES).glob("[!.]*.json")):
        try:
            yield _stored(path)
        except RecordError as error:
            _warn(path, error)
    for run in reversed(runs(reports / FOLDER)):
        try:
            yield entry_of(run, margin)
        except RunnerError as error:
            warn_unreadable(run, error)


def _warn(path: Path, error: RunnerError) -> None:
    import warnings

    from runner.core.errors import DamagedRunWarning

    warnings.warn(f"{path} is left out: {error.problems[0].message}", DamagedRunWarning, stacklevel=2)


def _stored(path: Path) -> RunEntry:
    """Return a stored entry; raises RecordError if its file is damaged, or of a newer program."""
    entry = read_value(path, FIGURES, FIGURES_FILE, MAX_BYTES).run
    if len(entry.cells) > MAX_CELLS:
        raise RecordError(Problem(f"{path} has too many cells"))
    return entry
