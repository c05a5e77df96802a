"""Read measurements of torch.utils.benchmark that a user wrote as JSON; tried with PyTorch 2.13.

A pickled Measurement is refused: reading a pickle runs the code in it. docs/how-to/import.md has the three lines that
write this form: ``{"torch": version, "device": name, "measurements": [{"label": ..., "times": [seconds, ...]}, ...]}``.
The fields of a measurement are those of ``TaskSpec``, and ``times`` its property of the same name: seconds of a call,
one for each sample of a single process. A measurement becomes
``imported/torch-benchmark/LABEL/SUB_LABEL/DESCRIPTION.ENV.threads=N/time``.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NotRequired

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.history.entries import CellEntry
from runner.store.shapes import CONFIG, Number, Positive
from runner.watch.imports.documents import document_of
from runner.watch.imports.figures import (
    MAX_SAMPLES,
    Origin,
    Read,
    cell_id,
    checked_seconds,
    damaged,
    from_samples,
    instant,
    release_of,
    run_of,
)

TOOL = "torch-benchmark"
EXPORTER = "docs/how-to/import.md has three lines that write measurements as JSON"


@with_config(CONFIG)
class Measurement(TypedDict):
    """A measurement."""

    times: list[Number]
    stmt: NotRequired[str | None]
    label: NotRequired[str | None]
    sub_label: NotRequired[str | None]
    description: NotRequired[str | None]
    env: NotRequired[str | None]
    num_threads: NotRequired[Positive | None]


@with_config(CONFIG)
class Document(TypedDict):
    """What is read of the file."""

    measurements: list[Measurement]
    torch: NotRequired[str | None]
    device: NotRequired[str | None]
    host: NotRequired[str | None]
    at: NotRequired[str | None]


SHAPE = TypeAdapter[Any](Document)


def read(path: Path, release: str = "") -> Read:
    """Return the run in a file.

    Args:
        path: the file.
        release: what was measured; by default the version of PyTorch in the file.

    Raises:
        RecordError: the file cannot be read, or has another form.
    """
    document = document_of(path, SHAPE, EXPORTER)
    version = document.get("torch") or ""
    measured = release_of(release or version)
    at, notes = document.get("at"), []
    if not at:
        notes.append("it has no time `at`: that of the last change of the file is taken")
    try:
        cells = [_cell(each, measured, f"measurements.{n}") for n, each in enumerate(document["measurements"])]
        entry = run_of(
            cells,
            Origin(
                at=instant(at, "at") if at else modified(path),
                tool=TOOL,
                device_name=document.get("device") or "",
                host=document.get("host") or "",
                source=str(path.absolute()),
                version=version,
            ),
        )
    except ValueError as error:
        raise damaged(path, error) from error
    return Read((entry,), tuple(notes))


def modified(path: Path) -> datetime:
    """Return when a file was last changed, in UTC."""
    return datetime.fromtimestamp(int(path.stat().st_mtime), UTC)


def _cell(measurement: Mapping[str, Any], release: str, field: str) -> CellEntry:
    times = measurement["times"][:MAX_SAMPLES]
    if not times:
        message = f"{field} has no times"
        raise ValueError(message)
    samples = [checked_seconds(value, f"{field}.times.{number}") for number, value in enumerate(times)]
    label = measurement.get("label") or measurement.get("stmt") or ""
    words = (measurement.get("description"), measurement.get("env"), f"threads={measurement.get('num_threads') or 1}")
    cell = cell_id(TOOL, label, measurement.get("sub_label") or "", ".".join(filter(None, words)))
    return from_samples(cell, release, [samples])
