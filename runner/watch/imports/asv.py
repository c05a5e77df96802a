"""Read what ``asv run`` writes: ``results/MACHINE/COMMIT-ENVIRONMENT.json`` and ``results/benchmarks.json``.

A benchmark becomes ``imported/asv/MODULE/FUNCTION/NAME=VALUE.NAME=VALUE/time``, and a file one run. Its date is that of
the commit, as in the graphs of asv: people measure old commits long after. ``benchmarks.json`` has the units; only
those in seconds are read. The 99 % interval of asv is not taken for one of 95 %: a benchmark has an interval if its
samples were recorded (``asv run --record-samples``). Tried with asv 0.6.
"""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NotRequired

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict  # typing has no TypedDict that pydantic accepts before Python 3.12

from runner.history.entries import CellEntry
from runner.store.shapes import CONFIG, Number
from runner.watch.imports.documents import document_of
from runner.watch.imports.figures import (
    MAX_CELLS,
    Origin,
    Read,
    cell_id,
    checked_seconds,
    damaged,
    from_samples,
    instant_of_milliseconds,
    release_of,
    run_of,
)

TOOL = "asv"
BENCHMARKS, MACHINE = "benchmarks.json", "machine.json"
VERSION = 2
"""Of a file of results, since asv 0.4."""


@with_config(CONFIG)
class Results(TypedDict):
    """A file of results."""

    commit_hash: str
    env_name: str
    date: Number
    params: dict[str, Any]
    result_columns: list[str]
    results: dict[str, list[Any]]
    version: int


@with_config(CONFIG)
class Benchmark(TypedDict):
    """A benchmark in ``benchmarks.json``."""

    unit: str
    type: NotRequired[str]
    param_names: NotRequired[list[str]]


SHAPE = TypeAdapter[Any](Results)
BENCHMARK = TypeAdapter[Any](dict[str, Any])
NAMED = TypeAdapter[Any](Benchmark)


def result_files(folder: Path) -> list[Path]:
    """Return the files of results in a folder of asv: ``results``, or that of a machine in it."""
    files = itertools.chain(folder.glob("*.json"), folder.glob("*/*.json"))
    return sorted(path for path in files if path.name not in (BENCHMARKS, MACHINE) and not path.name.startswith("."))


def read(path: Path, release: str = "") -> Read:
    """Return the run in a file of results.

    Args:
        path: the file.
        release: what was measured; by default the start of the commit.

    Raises:
        RecordError: the file or ``benchmarks.json`` cannot be read, or is not one of asv.
    """
    document = document_of(path, SHAPE, with_nan=True)
    if document["version"] != VERSION:
        raise damaged(path, f"version {document['version']} of asv's results is not read, only {VERSION}")
    known = _benchmarks(path)
    machine = document["params"]
    measured = release_of(release or document["commit_hash"][:10])
    notes: list[str] = []
    try:
        cells = list(itertools.islice(_cells(document, known, measured, notes), MAX_CELLS + 1))
        entry = run_of(
            cells,
            Origin(
                at=instant_of_milliseconds(document["date"], "date"),
                tool=TOOL,
                device_name=str(machine.get("cpu") or machine.get("arch") or ""),
                host=str(machine.get("machine") or ""),
                source=str(path.absolute()),
                identity=f"{document['commit_hash']} {document['env_name']}",
            ),
        )
    except ValueError as error:
        raise damaged(path, error) from error
    return Read((entry,), tuple(notes))


def _benchmarks(path: Path) -> Mapping[str, Any]:
    """Return name -> benchmark, of the ``benchmarks.json`` beside or above a file of results."""
    folders = (path.parent.parent, path.parent)
    file = next((folder / BENCHMARKS for folder in folders if (folder / BENCHMARKS).is_file()), None)
    if file is None:
        hint = f"copy {BENCHMARKS} from the folder `results` of asv to {path.parent}"
        raise damaged(path, f"there is no {BENCHMARKS} with the units of its benchmarks", hint)
    document = document_of(file, BENCHMARK, with_nan=True)
    try:
        return {name: NAMED.validate_python(each) for name, each in document.items() if isinstance(each, dict)}
    except ValueError as error:
        raise damaged(file, "a benchmark has no unit") from error


def _cells(
    document: Mapping[str, Any], known: Mapping[str, Any], release: str, notes: list[str]
) -> Iterator[CellEntry]:
    """Yield the cells of the benchmarks in seconds; ``notes`` gets a sentence for each other one."""
    for name, values in document["results"].items():
        benchmark = known.get(name)
        unit = benchmark["unit"] if benchmark else ""
        if benchmark is None:
            notes.append(f"{name[:100]} is left out: {BENCHMARKS} does not have it")
        elif unit != "seconds":
            notes.append(f"{name[:100]} is left out: its unit is {unit[:40]!r}, not 'seconds'")
        else:
            columns = dict(zip(document["result_columns"], values, strict=False))
            cells = list(_of_benchmark(name, columns, benchmark.get("param_names", []), release))
            notes.extend([f"{name[:100]} is left out: it has no result"] * (not cells))
            yield from cells


def _of_benchmark(name: str, columns: Mapping[str, Any], names: list[str], release: str) -> Iterator[CellEntry]:
    """Yield a cell for each combination of parameters that has a result."""
    lists = columns.get("params") or []
    if not all(isinstance(values, list) and all(isinstance(value, str) for value in values) for values in lists):
        message = f"results.{name[:100]}: its params are no lists of text"
        raise ValueError(message)
    results, samples = columns.get("result"), columns.get("samples")
    results = results if isinstance(results, list) else [results]
    samples = samples if isinstance(samples, list) else []
    suite, _, function = name.partition(".")
    for number, values in enumerate(itertools.islice(itertools.product(*lists), len(results))):
        field = f"results.{name[:100]}.{number}"
        pairs = itertools.zip_longest(names[: len(values)], values, fillvalue="_")
        cell = cell_id(TOOL, suite, function or suite, ".".join(f"{key}={_plain(value)}" for key, value in pairs))
        of_values = samples[number] if number < len(samples) else None
        if of_values:
            yield from_samples(cell, release, [_numbers(of_values, field)])
        elif results[number] is not None:
            (middle,) = _numbers([results[number]], field)
            yield CellEntry(cell=cell, release=release, seconds=middle, rounds=_repeat(columns, number))


def _plain(value: str) -> str:
    """Return a parameter as asv writes it, without the quotes of a text."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def _numbers(values: object, field: str) -> list[float]:
    if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
        message = f"{field}: these are no numbers"
        raise ValueError(message)
    return [checked_seconds(float(value), field) for value in values]


def _repeat(columns: Mapping[str, Any], number: int) -> int:
    """Return how many samples asv took of a combination; 1 if it does not say."""
    repeats = columns.get("stats_repeat")
    repeat = repeats[number] if isinstance(repeats, list) and number < len(repeats) else None
    return int(repeat) if isinstance(repeat, (int, float)) and 1 <= repeat <= 10**9 else 1
