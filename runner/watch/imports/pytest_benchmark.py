"""Read what pytest-benchmark writes with ``--benchmark-json FILE`` or ``--benchmark-autosave``; tried with 5.3.

A benchmark becomes ``imported/pytest-benchmark/FILE/FUNCTION/PARAMETERS/time``. Its times are always seconds. Its
samples are in the file only with ``--benchmark-json`` or ``--benchmark-save-data``; without them it has no interval.
"""

from collections.abc import Mapping
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

TOOL = "pytest-benchmark"


@with_config(CONFIG)
class Stats(TypedDict):
    """The times of a benchmark, in seconds."""

    median: Number
    rounds: Positive
    data: NotRequired[list[Number]]


@with_config(CONFIG)
class Benchmark(TypedDict):
    """A benchmark."""

    name: str
    fullname: str
    param: NotRequired[str | None]
    stats: Stats


@with_config(CONFIG)
class Document(TypedDict):
    """What is read of the file."""

    benchmarks: list[Benchmark]
    datetime: str
    version: str
    machine_info: dict[str, Any]
    commit_info: NotRequired[dict[str, Any] | None]


SHAPE = TypeAdapter[Any](Document)


def read(path: Path, release: str = "") -> Read:
    """Return the run in a file.

    Args:
        path: the file.
        release: what was measured; by default the start of the commit, or ``unknown``.

    Raises:
        RecordError: the file cannot be read, or is not one of pytest-benchmark.
    """
    document = document_of(path, SHAPE)
    machine = document["machine_info"]
    measured = release_of(release or str((document.get("commit_info") or {}).get("id") or "")[:10])
    try:
        cells = [_cell(each, measured, f"benchmarks.{number}") for number, each in enumerate(document["benchmarks"])]
        entry = run_of(
            cells,
            Origin(
                at=instant(document["datetime"], "datetime"),
                tool=TOOL,
                device_name=_processor(machine),
                host=str(machine.get("node") or ""),
                source=str(path.absolute()),
                version=document["version"],
            ),
        )
    except ValueError as error:
        raise damaged(path, error) from error
    return Read((entry,))


def _cell(benchmark: Mapping[str, Any], release: str, field: str) -> CellEntry:
    file, _, test = str(benchmark["fullname"]).partition("::")
    parameters = benchmark.get("param") or ""
    function = (test or benchmark["name"]).removesuffix(f"[{parameters}]")
    cell = cell_id(TOOL, file.removesuffix(".py").replace("/", "."), function.replace("::", "."), parameters)
    stats = benchmark["stats"]
    samples = stats.get("data", [])[:MAX_SAMPLES]
    if samples:
        each = [checked_seconds(value, f"{field}.stats.data.{number}") for number, value in enumerate(samples)]
        return from_samples(cell, release, [each])
    middle = checked_seconds(stats["median"], f"{field}.stats.median")
    return CellEntry(cell=cell, release=release, seconds=middle, rounds=stats["rounds"])


def _processor(machine: Mapping[str, Any]) -> str:
    cpu = machine.get("cpu")
    brand = (cpu.get("brand_raw") or cpu.get("brand")) if isinstance(cpu, dict) else None
    return str(brand or machine.get("processor") or machine.get("machine") or "")
