"""What the readers of figures share: ids of imported cells, intervals from samples, runs made of figures.

The id of an imported cell is ``imported/TOOL/SUITE/BENCHMARK/PARAMETERS/time``. A part of it has the characters that
the id of a cell may have; a name with others gets a hyphen for them and ends in a dot and six digits of its SHA-256,
so that two names never become one. A part that a figure does not have is ``_``. A figure whose cell is the id of a
cell of this program is ``imported/ENVIRONMENT+IMPLEMENTATION/WORKLOAD/CASE/PHASE/PRECISION``.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median

from runner.analysis.time_intervals import median_interval
from runner.catalog.published import PREFIX, SOURCES, figures_by_side, select_sides
from runner.core.bounds import LEAST_SECONDS, MOST_SECONDS
from runner.core.errors import Problem, RecordError
from runner.core.model import Cell
from runner.core.text import printable
from runner.history.entries import CellEntry, RunEntry
from runner.stats.intervals import CONFIDENCE

MAX_CELLS = 100_000
"""Cells of a run that are read."""
MAX_PART = 120
"""Characters of a part of an id; a longer name is cut and gets digits of its SHA-256."""
MAX_TEXT = 200
"""Characters that are kept of a device, a host or a release."""

_REFUSED = re.compile(r"[^A-Za-z0-9_.+=-]+")


@dataclass(frozen=True, slots=True)
class Read:
    """What a file holds.

    Attributes:
        entries: its runs.
        notes: what was left out, as sentences.
    """

    entries: tuple[RunEntry, ...]
    notes: tuple[str, ...] = ()


def cell_id(tool: str, suite: str, benchmark: str, parameters: str = "") -> str:
    """Return the id of an imported cell.

    >>> cell_id("asv", "bench_sort", "Sort.time_sorted", "size=100")
    'imported/asv/bench_sort/Sort.time_sorted/size=100/time'
    """
    return "/".join(("imported", *map(_part, (tool, suite, benchmark, parameters)), "time"))


def cell_of(cell: Cell) -> str:
    """Return the id of an imported figure of a cell of this program.

    >>> cell_of(Cell.parse("torch-0.4/nn-lstm/asr-lstm/1x320/train/fp32"))
    'imported/torch-0.4+nn-lstm/asr-lstm/1x320/train/fp32'
    """
    return f"imported/{cell.environment}+{cell.implementation}/{cell.case_id}/{cell.phase}/{cell.precision}"


def _part(name: str) -> str:
    if not name:
        return "_"
    part = _REFUSED.sub("-", name)[:MAX_PART].lstrip(".+=-") or "_"
    return part if part == name else f"{part}.{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:6]}"


def checked_seconds(value: float, field: str) -> float:
    """Return a time in seconds.

    Raises:
        ValueError: it is no time of a step in seconds; with the field.
    """
    if not (math.isfinite(value) and LEAST_SECONDS <= value <= MOST_SECONDS):
        message = f"{field}: {value:.6g} is no time of a step in seconds"
        raise ValueError(message)
    return value


def from_samples(cell: str, release: str, samples: Sequence[Sequence[float]]) -> CellEntry:
    """Return the cell of some samples, grouped by the process that measured them.

    The time is the median of all samples. The 95 % interval is that of the median of the processes' medians; with the
    samples of a single process it is that of the median of these, and says nothing about other processes.

    Args:
        cell: its id.
        release: what was measured.
        samples: for each process its samples in seconds; at least one process with one sample.
    """
    medians = [median(of_process) for of_process in samples]
    values = medians if len(medians) > 1 else list(samples[0])
    interval = median_interval(values, [""] * len(values), 1 - CONFIDENCE)
    middle = median(values)
    low, high = interval or (None, None)
    return CellEntry(cell=cell, release=release, seconds=middle, seconds_low=low, seconds_high=high, rounds=len(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the cells of a run come from.

    Attributes:
        at: when they were measured; without an offset, in UTC.
        tool: what measured them; the backend of the run.
        device_name: the processor or the GPU; empty if unknown.
        host: the name of the machine, or of a publication; empty if unknown.
        source: the file.
        identity: what identifies the run; empty if nothing but its content does.
    """

    at: datetime
    tool: str
    device_name: str
    host: str
    source: str
    identity: str = ""


def run_of(cells: Iterable[CellEntry], origin: Origin) -> RunEntry:
    """Return a run of imported cells.

    Its id is its time and eight digits of a SHA-256: of what identifies the run at its origin, else of its content. So
    the same file is the same run, wherever it lies. The name of the device has that of the host: a series is of one
    device, and an imported one never continues a series of this machine.

    Raises:
        ValueError: it has no cell, too many, or a cell twice.
    """
    at, host = _in_utc(origin.at), _short(origin.host)
    entry = RunEntry(
        run="",
        at=f"{at:%Y-%m-%dT%H:%M:%SZ}",
        kind="import",
        device="import",
        device_name=foreign_device(_short(origin.device_name) or "unknown device", host),
        backend=origin.tool,
        host=host,
        harness=origin.tool,
        source=origin.source,
        cells=tuple(cells),
    )
    if not entry.cells:
        message = "it has no time in seconds"
        raise ValueError(message)
    _check_cells(entry.cells)
    key = f"{origin.tool}\n{entry.device_name}\n{origin.identity}" if origin.identity else entry.digest
    digest = hashlib.sha256(key.encode(errors="replace")).hexdigest()
    return replace(entry, run=f"{at:%Y%m%d-%H%M%S}-{digest[:8]}")


def _check_cells(cells: Sequence[CellEntry]) -> None:
    if len(cells) > MAX_CELLS:
        message = f"it has {len(cells):,} tests, and at most {MAX_CELLS:,} are read"
        raise ValueError(message)
    seen: set[str] = set()
    for cell in cells:
        if cell.cell in seen:
            message = f"it has {cell.cell} twice"
            raise ValueError(message)
        seen.add(cell.cell)


def foreign_device(device_name: str, host: str) -> str:
    """Return the name of a device of another machine: with the name of its host.

    >>> foreign_device("2 x H200", "gpu-box")
    '2 x H200 of gpu-box'
    """
    return f"{device_name} of {host or 'an unknown host'}"


def _short(text: str) -> str:
    return printable(text.strip(), MAX_TEXT)


def release_of(text: str) -> str:
    """Return a version as the history keeps it: short, and printable."""
    return _short(text) or "unknown"


def _in_utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def instant(text: str, field: str) -> datetime:
    """Return a time as it is written; without an offset, in UTC.

    Raises:
        ValueError: it is no time; with the field.
    """
    try:
        return _in_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError) as error:
        message = f"{field}: {text[:40]!r} is no date and time"
        raise ValueError(message) from error


def damaged(path: object, reason: object, hint: str | None = None) -> RecordError:
    """Return the error of a file that is damaged, or of a format that is not read."""
    return RecordError(Problem(f"{path} was not imported: {reason}", hint=hint))


def read_published(name: str) -> Read:
    """Return the figures that ``published:SOURCE/ENVIRONMENT`` matches, a run for each source and device.

    The device of a run is that of the publication, its host the name of the publication, its date the first of January
    of the year. A spread that was published is a standard deviation, so there is no interval.

    Raises:
        UsageError: there is no such source.
    """
    groups: dict[tuple[str, str], list[CellEntry]] = {}
    for side in select_sides(name):
        for figure in figures_by_side()[side]:
            cell = Cell.parse(
                f"{figure.environment}/{figure.implementation}/{figure.case}/{figure.phase}/{figure.precision}"
            )
            entry = CellEntry(cell=cell_of(cell), release=figure.release, seconds=figure.seconds, rounds=1)
            groups.setdefault((figure.source, figure.device), []).append(entry)
    return Read(
        tuple(
            run_of(
                cells,
                Origin(
                    at=datetime(SOURCES[source].year, 1, 1, tzinfo=UTC),
                    tool="published",
                    device_name=device,
                    host=source,
                    source=f"{PREFIX}{source}",
                    identity=f"{source} {device}",
                ),
            )
            for (source, device), cells in groups.items()
        )
    )
