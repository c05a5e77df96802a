"""Runs of another machine: copied to ``reports/imports/runs``, where nothing mixes with the runs of this one.

``reports/imports`` is a reports folder of its machine: ``runner report --reports reports/imports`` reads it.
Imported figures are kept in ``reports/imports/figures/RUN.json``, which a rebuild of the history reads again.
"""

import json
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from runner.analysis.analyse import analyse_run
from runner.core.errors import DamagedRunWarning, Problem, RecordError, RunnerError, UsageError, file_problem
from runner.core.paths import refuse_foreign_links
from runner.core.text import path_text
from runner.core.unfinished import hidden, remove_folder, sweep
from runner.history.entries import RunEntry
from runner.history.writes import checked
from runner.session.results import warn_unreadable
from runner.session.run_entry import run_entry
from runner.store.documents import JOURNAL, MAX_BYTES, newest, read_value, save
from runner.store.run import Run, runs
from runner.watch.imports.archives import RUN_ID, Budget, copy_run, runs_in_folder, unpack
from runner.watch.imports.figures import MAX_CELLS, Read, damaged, foreign_device

FOLDER = "imports"
"""Below the folder of the reports."""


def read_folder(folder: Path, reports: Path, margin: float) -> Read:
    """Copy the run in a folder, or those of a reports folder, and return them as entries.

    Args:
        folder: of a run, or a reports folder.
        reports: the folder that holds the runs of this machine.
        margin: the change that counts as none.

    Raises:
        RecordError: there is no run, or none that can be read.
    """
    runs = runs_in_folder(folder)
    if not runs:
        raise damaged(folder, "it holds no run", "name a run folder or a reports folder, which has a folder `runs`")
    if folder.resolve() in (reports.resolve(), (reports / FOLDER).resolve()):
        raise UsageError(Problem(f"{folder} is the folder of this machine's runs", hint="name one of another machine"))
    with _incoming(reports) as incoming:
        budget = Budget()
        for run in runs:
            if RUN_ID.fullmatch(run.resolve().name) is None:
                raise damaged(run, "the name of its folder is no run's", "a run is YYYYMMDD-HHMMSS-xxxx")
            copy_run(run.resolve(), incoming, budget)
        return _enter(incoming, reports, margin, folder)


def read_archive(archive: Path, reports: Path, margin: float) -> Read:
    """Unpack the runs of a ``.tar.gz`` and return them as entries; the arguments are those of ``read_folder``.

    Raises:
        RecordError: the archive is damaged or too large, or holds no run that can be read.
    """
    with _incoming(reports) as incoming:
        left_out = unpack(archive, incoming, Budget())
        if not runs_in_folder(incoming):
            raise damaged(archive, "it holds no run folder", "make it with `tar -czf run.tar.gz -C reports runs/RUN`")
        read = _enter(incoming, reports, margin, archive)
    note = f"{left_out} of its members are left out: links, and files that no run folder has"
    return Read(read.entries, (*read.notes, note) if left_out else read.notes)


@contextmanager
def _incoming(reports: Path) -> Iterator[Path]:
    """Give a folder on the disk of the reports, which is removed at the end."""
    refuse_foreign_links(reports / FOLDER, reports / FOLDER / "runs", reports / FOLDER / "nights")
    sweep(reports / FOLDER)
    folder = hidden(reports / FOLDER / "incoming")
    try:
        folder.mkdir(parents=True)
        yield folder
    except OSError as error:
        raise UsageError(file_problem(error, folder)) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _enter(incoming: Path, reports: Path, margin: float, source: Path) -> Read:
    """Move each run that can be read to its folder; return the entries, and a note for each of the others."""
    entries, notes = [], []
    for folder in runs_in_folder(incoming):
        try:
            entry = entry_of(Run.open(folder), margin)
            if not entry.cells:
                notes.append(f"run {folder.name} is left out: it has no good record")
                continue
            target = _move(folder, reports)
        except RunnerError as error:
            notes.append(f"run {folder.name} is left out: {error.problems[0].message}".replace(f"{incoming}/", ""))
            continue
        entries.append(replace(entry, source=path_text(target)))
    if not entries:
        raise damaged(source, "; ".join(notes) or "its plan.json is a link, and no link is followed")
    return Read(tuple(entries), tuple(notes))


def entry_of(run: Run, margin: float) -> RunEntry:
    """Return a run of another machine as an entry.

    Raises:
        RecordError: it cannot be read.
        EntryError: it has a value that is none, such as a time of 0 seconds.
    """
    entry = run_entry(analyse_run(run, margin), run)
    return checked(replace(entry, kind="import", device_name=foreign_device(entry.device_name, entry.host)))


def _move(folder: Path, reports: Path) -> Path:
    """Move a run and its night below ``reports/imports``; return the new folder.

    A run that went on replaces what is there.

    Raises:
        RecordError: another run has the same id.
    """
    target = reports / FOLDER / "runs" / folder.name
    here = reports / "runs" / folder.name
    if here.exists():
        raise RecordError(Problem(f"{here} is a run of this machine"))
    if target.exists():
        old, new = ((path / JOURNAL).read_bytes() for path in (target, folder))
        if not new.startswith(old):
            raise RecordError(Problem(f"{target} is another run, or has more records"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            remove_folder(target)
        folder.rename(target)
        night = folder.parent.parent / "nights" / f"{folder.name}.json"
        if night.exists():
            (reports / FOLDER / "nights").mkdir(exist_ok=True)
            night.rename(reports / FOLDER / "nights" / night.name)
    except OSError as error:
        raise UsageError(file_problem(error, target)) from error
    return target


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
            warnings.warn(f"{path} is left out: {error.problems[0].message}", DamagedRunWarning, stacklevel=2)
    for run in reversed(runs(reports / FOLDER)):
        try:
            yield entry_of(run, margin)
        except RunnerError as error:
            warn_unreadable(run, error)


def _stored(path: Path) -> RunEntry:
    """Return a stored entry; raises RecordError if its file is damaged, or of a newer program."""
    entry = read_value(path, FIGURES, FIGURES_FILE, MAX_BYTES).run
    if len(entry.cells) > MAX_CELLS:
        raise RecordError(Problem(f"{path} has too many tests"))
    return entry
