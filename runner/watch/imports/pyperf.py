"""Read what pyperf writes with ``-o FILE``: a benchmark or a suite; tried with 2.10.

A benchmark becomes ``imported/pyperf/_/NAME/_/time``. Its values are grouped by the process that measured them, so
its interval is over processes, as those of this program are.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.history.entries import CellEntry
from runner.store.shapes import CONFIG, Number
from runner.watch.imports.documents import document_of
from runner.watch.imports.figures import (
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

TOOL = "pyperf"
Metadata = dict[str, Any]


@with_config(CONFIG)
class Process(TypedDict):
    """What a process measured; one that calibrates has no values."""

    values: NotRequired[list[Number]]
    metadata: NotRequired[Metadata]


@with_config(CONFIG)
class Benchmark(TypedDict):
    """A benchmark."""

    runs: list[Process]
    metadata: NotRequired[Metadata]


@with_config(CONFIG)
class Document(TypedDict):
    """What is read of the file."""

    benchmarks: list[Benchmark]
    metadata: NotRequired[Metadata]
    version: NotRequired[str]


SHAPE = TypeAdapter[Any](Document)


def read(path: Path, release: str = "") -> Read:
    """Return the run in a file.

    Args:
        path: the file.
        release: what was measured; by default the version of Python.

    Raises:
        RecordError: the file cannot be read, or is not one of pyperf.
    """
    document = document_of(path, SHAPE)
    shared = {**_first_metadata(document), **document.get("metadata", {})}
    measured = release_of(release or str(shared.get("python_version") or "").partition(" ")[0])
    cells, notes = [], []
    try:
        for number, benchmark in enumerate(document["benchmarks"]):
            known = {**shared, **benchmark.get("metadata", {})}
            name, unit = str(known.get("name") or f"benchmark {number}"), known.get("unit", "second")
            if unit == "second":
                cells.append(_cell(benchmark, cell_id(TOOL, "", name), measured, f"benchmarks.{number}"))
            else:
                notes.append(f"{name} is left out: its unit is {str(unit)[:40]!r}, not 'second'")
        entry = run_of(
            cells,
            Origin(
                at=instant(_first_date(document), "runs.metadata.date"),
                tool=TOOL,
                device_name=str(shared.get("cpu_model_name") or shared.get("platform") or ""),
                host=str(shared.get("hostname") or ""),
                source=str(path.absolute()),
                version=str(shared.get("perf_version") or ""),
            ),
        )
    except ValueError as error:
        raise damaged(path, error) from error
    return Read((entry,), tuple(notes))


def _cell(benchmark: Mapping[str, Any], cell: str, release: str, field: str) -> CellEntry:
    samples = [
        [checked_seconds(value, f"{field}.runs.{run}.values.{index}") for index, value in enumerate(process["values"])]
        for run, process in enumerate(benchmark["runs"])
        if process.get("values")
    ]
    if not samples:
        message = f"{field} has no values"
        raise ValueError(message)
    return from_samples(cell, release, samples)


def _first_metadata(document: Mapping[str, Any]) -> Metadata:
    """Return the metadata of the first benchmark: a file with a single one has all of it there, or with its runs."""
    first: Mapping[str, Any] = next(iter(document["benchmarks"]), {})
    of_process: Metadata = next((run["metadata"] for run in first.get("runs", []) if "metadata" in run), {})
    return {**of_process, **first.get("metadata", {})}


def _first_date(document: Mapping[str, Any]) -> str:
    """Return when the first process started; pyperf writes local time without an offset."""
    metadata = (run.get("metadata", {}) for each in document["benchmarks"] for run in each["runs"])
    return min((str(each["date"]) for each in metadata if "date" in each), default="")
