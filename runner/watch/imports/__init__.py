"""``runner import``: runs of other machines, published figures, and tables of figures enter the history.

``figure_table`` reads tables of figures, and ``figures`` makes runs of them and of published figures, and names their
cells. ``run_folders`` copies the runs of other machines, with ``archives``, and keeps the figures for
``runner history rebuild``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runner.catalog.published import is_published
from runner.core.errors import Problem, RunnerError
from runner.history.entries import RunEntry
from runner.report.formatting import counted
from runner.watch.imports.archives import is_archive, runs_in_folder
from runner.watch.imports.figure_table import other_format, read_table
from runner.watch.imports.figures import Read, read_published
from runner.watch.imports.run_folders import read_archive, read_folder, store, stored_entries

__all__ = ["Format", "Imported", "import_files", "stored_entries"]

Format = Literal["auto", "runs", "table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did.

    Attributes:
        runs: for each path its runs, and whether each is new or changed in the history.
        notes: what was left out, as (path, sentence).
        failures: why a path was not imported.
    """

    runs: tuple[tuple[str, RunEntry, bool], ...]
    notes: tuple[tuple[str, str], ...]
    failures: tuple[Problem, ...]

    def text(self) -> str:
        """Return a line for each run, and one for each note."""
        lines = [
            f"{path}: run {entry.run} of {entry.device_name}, {counted(len(entry.cells), 'test')}"
            f"{'' if is_new else ', already in the history'}"
            for path, entry, is_new in self.runs
        ]
        return "\n".join([*lines, *(f"{path}: {note}" for path, note in self.notes)])


def import_files(
    names: Sequence[str],
    reports: Path,
    margin: float,
    *,
    format: Format = "auto",  # noqa: A002  the name of the option
    release: str = "",
    history: str | None = None,
) -> Imported:
    """Import files and folders; what cannot be read does not keep the others out.

    Args:
        names: paths, or ``published:SOURCE``.
        reports: the folder that holds the runs of this machine; imports are kept in ``imports`` below it.
        margin: the change that counts as none, for runs of other machines.
        format: of the files; ``auto`` looks at them.
        release: what was measured, for rows of a table that do not say it.
        history: the URL of the history, as ``--history`` gives it.

    Raises:
        HistoryError: the history cannot be written.
        UsageError: ``history`` is no URL of a history.
    """
    from runner.history.database import History
    from runner.history.writes import EntryError
    from runner.session.remember import history_url

    url = history_url(reports, history)
    runs: list[tuple[str, RunEntry, bool]] = []
    notes: list[tuple[str, str]] = []
    failures: list[Problem] = []
    reports.mkdir(parents=True, exist_ok=True)
    with History.open(url) as database:
        for name in names:
            try:
                read = _read(name, format, reports, margin, release)
            except RunnerError as error:
                failures.extend(error.problems)
                continue
            for entry in read.entries:
                try:
                    is_new = database.add(entry)
                except EntryError as error:
                    failures.extend(error.problems)
                    continue
                if not _is_copied(entry):
                    store(entry, reports)
                runs.append((name, entry, is_new))
            notes.extend((name, note) for note in read.notes)
    return Imported(runs=tuple(runs), notes=tuple(notes), failures=tuple(failures))


def _read(name: str, format_name: Format, reports: Path, margin: float, release: str) -> Read:
    """Return what is in a file, a folder or a publication; raises RunnerError if it cannot be read."""
    path = Path(name)
    if is_published(name):
        return read_published(name)
    if path.is_dir():
        if not runs_in_folder(path) and any((each / "benchmarks.json").is_file() for each in (path, path.parent)):
            raise other_format(path, "results of asv")
        return read_folder(path, reports, margin)
    if format_name == "runs" or (format_name == "auto" and is_archive(path)):
        return read_archive(path, reports, margin)
    return read_table(path, release)


def _is_copied(entry: RunEntry) -> bool:
    """Return whether an entry is a run that was copied as a folder; the others are kept as figures."""
    return entry.device != "import"
