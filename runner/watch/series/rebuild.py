"""`runner history rebuild`: add every run of a reports folder to the history again."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from runner.analysis.analyse import analyse_run
from runner.core.errors import RecordError
from runner.core.text import path_text
from runner.history.database import History
from runner.history.entries import RunEntry
from runner.history.location import sqlite_path
from runner.history.writes import EntryError
from runner.nights.anchors_file import acceptances
from runner.report.formatting import counted
from runner.session.remember import with_confirmations
from runner.session.results import warn_unreadable
from runner.session.run_entry import run_entry
from runner.store.run import Run, runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What a rebuild did.

    Attributes:
        name: the history, as messages name it.
        changed: runs that are new or changed; ``unchanged`` those that were there.
        damaged: ids of runs that cannot be read.
        empty: runs without a good record, which have nothing to add.
        levels: accepted levels that are new.
        gone: ids of runs of the history that have no folder in these reports any more; they stay.
    """

    name: str
    changed: int
    unchanged: int
    damaged: tuple[str, ...]
    empty: int
    levels: int
    gone: tuple[str, ...]

    def text(self) -> str:
        """Return it as lines."""
        lines = [f"{self.name}: {counted(self.changed, 'run')} added or changed, {self.unchanged} unchanged"]
        lines += [f"{counted(self.empty, 'run')} without a good record"] if self.empty else []
        lines += [f"{counted(self.levels, 'accepted level')} added"] if self.levels else []
        lines += [f"{counted(len(self.damaged), 'damaged run')} left out: {', '.join(self.damaged)}"] * bool(
            self.damaged
        )
        lines += [f"{counted(len(self.gone), 'run')} without a folder kept"] if self.gone else []
        return "\n".join(lines)


def rebuild(
    reports: Path, history: History, margin: float, note: Callable[[str], object], imported: Iterable[RunEntry]
) -> Rebuilt:
    """Add every run of a reports folder to a history, and what was imported into that; other runs stay as they are.

    Each run is one transaction, so that a rebuild that is interrupted keeps what it added, and the next one goes on.

    Args:
        reports: the folder that holds the runs.
        history: an open history.
        margin: the relative change that counts as none.
        note: takes a sentence about the progress every hundred runs.
        imported: what was imported into the folder, see ``watch.imports.stored_entries``.

    Raises:
        HistoryError: the history cannot be written.
        RunnerError: the file of the anchors is damaged.
    """
    changed = unchanged = empty = 0
    damaged, seen = [], set()
    for count, run in enumerate(stored_runs(reports), 1):
        seen.add(run.id)
        try:
            entry = run_entry(analyse_run(run, margin), run)
            is_new = bool(entry.cells) and history.add(entry)
        except RecordError as error:
            warn_unreadable(run, error)
            damaged.append(run.id)
            continue
        except EntryError as error:
            note(error.problems[0].message)
            damaged.append(run.id)
            continue
        if not entry.cells:
            empty += 1
        else:
            changed, unchanged = changed + is_new, unchanged + (not is_new)
        if count % 100 == 0:
            note(f"{count} runs read")
    for entry in imported:
        seen.add(entry.run)
        try:
            is_new = history.add(entry)
        except EntryError as error:
            note(error.problems[0].message)
            damaged.append(entry.run)
            continue
        changed, unchanged = changed + is_new, unchanged + (not is_new)
    folder = f"{path_text(reports)}/"
    gone = tuple(row.run for row in history.runs() if row.source.startswith(folder) and row.run not in seen)
    return Rebuilt(
        name=history.name,
        changed=changed,
        unchanged=unchanged,
        damaged=tuple(damaged),
        empty=empty,
        levels=history.accept(*acceptances(reports)),
        gone=gone,
    )


def rebuild_missing(
    reports: Path, url: str, margin: float, note: Callable[[str], object], imported: Iterable[RunEntry]
) -> None:
    """Make a history whose file does not exist; the arguments are those of ``rebuild``, with the URL of the history.

    A server's database is never missing.

    Raises:
        HistoryError: the history cannot be written.
        RunnerError: the file of the anchors is damaged.
    """
    path = sqlite_path(url)
    if path is not None and not path.exists():
        with History.open(url) as history:
            rebuild(reports, history, margin, note, imported)


def stored_runs(reports: Path) -> Iterator[Run]:
    """Yield every run of a reports folder, oldest first, those of each night's confirmation after it."""
    for run in reversed(runs(reports)):
        yield from with_confirmations(run)
