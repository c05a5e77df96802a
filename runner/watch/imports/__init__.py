"""``runner import``: runs of other machines, published tables, and results of other programs enter the history.

``figures`` makes runs of figures and names their cells; a module for each format reads files of it. ``run_folders``
copies the runs of other machines, with ``archives``. ``stored`` keeps what was read from the other formats, for
``runner history rebuild``.
"""

import functools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runner.catalog.published import is_published
from runner.core.errors import Problem, RunnerError
from runner.history.entries import RunEntry
from runner.report.formatting import counted
from runner.watch.imports import asv, published, pyperf, pytest_benchmark, run_folders, tables, torch_benchmark
from runner.watch.imports.archives import is_archive, runs_in_folder
from runner.watch.imports.documents import content_of
from runner.watch.imports.figures import Read, damaged
from runner.watch.imports.stored import store, stored_entries

__all__ = ["Format", "Imported", "import_files", "stored_entries"]

Format = Literal["auto", "runs", "table", "asv", "pytest-benchmark", "pyperf", "torch-benchmark"]
READERS: dict[str, Callable[[Path, str], Read]] = {
    "table": tables.read,
    "asv": asv.read,
    "pytest-benchmark": pytest_benchmark.read,
    "pyperf": pyperf.read,
    "torch-benchmark": torch_benchmark.read,
}
KEYS = {
    "pytest-benchmark": ("machine_info", "benchmarks"),
    "asv": ("commit_hash", "results"),
    "torch-benchmark": ("measurements",),
    "table": ("figures",),
    "pyperf": ("benchmarks",),
}
"""Format -> the names by which a JSON file of it is known, the surest first."""
PICKLES = (b"\x80", b"PK\x03\x04")
"""How a pickle starts, and the archive that ``torch.save`` writes."""
ACCEPTED = "name a run folder, a reports folder, a .tar.gz of one, a table, or results of " + ", ".join(
    name for name in READERS if name != "table"
)


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
            f"{path}: run {entry.run} of {entry.device_name}, {counted(len(entry.cells), 'cell')}"
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
        release: what was measured, for formats that do not say it; empty for their default.
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
        for name, reading in _readings(names, format, failures):
            try:
                read = reading(reports, margin, release)
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


Reading = Callable[[Path, float, str], Read]


def _readings(names: Sequence[str], format_name: Format, failures: list[Problem]) -> Iterator[tuple[str, Reading]]:
    """Yield each path with what reads it; a folder of asv is several files."""
    for name in names:
        try:
            yield from _readings_of(name, format_name)
        except RunnerError as error:
            failures.extend(error.problems)


def _readings_of(name: str, format_name: Format) -> Iterator[tuple[str, Reading]]:
    path = Path(name)
    if is_published(name):
        yield name, lambda *_: published.read(name)
    elif path.is_dir():
        if runs_in_folder(path) or format_name == "runs":
            yield name, lambda reports, margin, _: run_folders.read_folder(path, reports, margin)
        else:
            files = asv.result_files(path)
            if not files or not any((folder / asv.BENCHMARKS).is_file() for folder in (path, path.parent)):
                raise damaged(path, "it holds no run, and no results of asv", ACCEPTED)
            for file in files:
                yield str(file), functools.partial(_read_file, asv.read, file)
    elif format_name == "runs" or (format_name == "auto" and is_archive(path)):
        yield name, lambda reports, margin, _: run_folders.read_archive(path, reports, margin)
    else:
        reader = READERS[format_of(path) if format_name == "auto" else format_name]
        yield name, functools.partial(_read_file, reader, path)


def _read_file(reader: Callable[[Path, str], Read], path: Path, _reports: Path, _margin: float, release: str) -> Read:
    return reader(path, release)


def format_of(path: Path) -> str:
    """Return the format of a file, by its name and what is in it.

    Raises:
        RecordError: it cannot be read, is a pickle, or is of no format that is read.
    """
    if path.suffix.lower() == ".csv":
        return "table"
    content = content_of(path)
    if content.startswith(PICKLES):
        raise damaged(path, "it is a pickle, and reading one runs the code in it", torch_benchmark.EXPORTER)
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"it is no JSON: {str(error)[:100]}", ACCEPTED) from error
    names = document if isinstance(document, dict) else {}
    for name, keys in KEYS.items():
        if all(key in names for key in keys):
            return name
    raise damaged(path, "it is of no format that is read", ACCEPTED)


def _is_copied(entry: RunEntry) -> bool:
    """Return whether an entry is a run that was copied as a folder; the others are kept as figures."""
    return entry.device != "import"
