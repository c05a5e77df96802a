"""The files of nights, ``reports/nights/<run>.json``: the one writer, the one reader, and what their places say."""

import json
from pathlib import Path

from runner.core.errors import Problem, RecordError
from runner.core.files import read_bounded
from runner.core.json import Document, parse_object
from runner.history.entries import Kind
from runner.nights.night import KIND, NIGHT, Night
from runner.store.documents import NewerVersionError, save, upgrade
from runner.store.run import NIGHTS, Run, is_ahead
from runner.store.shapes import value_of

MAX_BYTES = 64 << 20
"""The largest stored night that is read."""


def nights_folder(reports: Path) -> Path:
    """Return the folder of the nights of a reports folder, which has the runs that confirmed their changes, too."""
    return reports / NIGHTS


def night_path(reports: Path, run: str) -> Path:
    """Return the file of a night; it exists from its start on."""
    return nights_folder(reports) / f"{run}.json"


def night_names(reports: Path) -> list[str]:
    """Return the names of the files of nights without their ending, which are runs, oldest first.

    Those that are named after a time in the future come first: for years they would be the last night.
    """
    names = sorted(path.stem for path in nights_folder(reports).glob("[!.]*.json"))
    return sorted(names, key=lambda name: not is_ahead(name))


def night_of(run: Run) -> Path:
    """Return the file of the night whose first run this is; it exists only if there was such a night."""
    return night_path(run.reports, run.id)


def run_kind(run: Run) -> Kind:
    """Return the kind of a run, by its place.

    Below ``nights/<night>/runs`` it confirms changes of a night, and where ``nights/<run>.json`` exists it is the first
    run of one.
    """
    night = run.reports
    if night.parent.name == NIGHTS and night.with_name(f"{night.name}.json").exists():
        return "confirmation"
    return "night" if night_of(run).exists() else "run"


def write_night(night: Night, reports: Path) -> Path:
    """Write a night, replacing its file as a whole; return the path.

    Raises:
        NewerVersionError: a newer program wrote the file, and knows more of the night.
        RecordError: it cannot be written.
    """
    path = night_path(reports, night.run)
    try:
        upgrade(_document(path), path, KIND)
    except NewerVersionError:
        raise
    except (RecordError, OSError):  # it is missing, or damaged
        pass
    save(path, json.dumps(night.json(), indent=1, allow_nan=False) + "\n")
    return path


def read_nights(reports: Path) -> dict[str, Night]:
    """Return id of the first run -> its night, oldest first; a file that this program did not write is ignored."""
    nights = {}
    for name in night_names(reports):
        try:
            nights[name] = read_night(night_path(reports, name))
        except RecordError:
            continue
    return nights


def read_night(path: Path) -> Night:
    """Read a night of this or an earlier version; of a later one, what this program knows.

    Raises:
        RecordError: the file cannot be read, or is no night.
    """
    try:
        return value_of(_upgraded(_document(path), path), NIGHT)
    except OSError as error:
        raise RecordError(Problem(f"{path} cannot be read: {error.strerror or error}")) from error
    except ValueError as error:
        raise RecordError(Problem(f"{path} is damaged: {error}")) from error


def _document(path: Path) -> Document:
    return {"version": 1, **parse_object(read_bounded(path, MAX_BYTES), path, 1), "run": path.stem}


def _upgraded(document: Document, path: Path) -> Document:
    try:
        return upgrade(document, path, KIND)
    except NewerVersionError:
        return document
