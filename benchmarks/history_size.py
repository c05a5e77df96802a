"""A history of 100,000 measurements: the time of a trend, of a list and of adding a night, and the database's size.

Two hundred cells in 500 nights, as 17 months of nights have them: a new release and another digest every 14 nights, and
two changes a night. PostgreSQL is measured, too, if a server's programs are installed.
"""

import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, TypeVar

from benchmarks.table import Row

if TYPE_CHECKING:
    from runner.history.database import History
    from runner.history.entries import CellEntry, RunEntry

T = TypeVar("T")
ROOT = Path(__file__).parent.parent
CELLS, NIGHTS = 200, 500
TREND_SECONDS = 0.1
FIRST = datetime(2025, 1, 1, 2, 30, tzinfo=UTC)
CELL = "torch-{}.x/nn-lstm/rnn-sequence/lstm-t64-b32-h{}/train/fp32"


def rows() -> Iterator[Row]:
    """Give the figures of SQLite, and of PostgreSQL where that is installed."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _rows(f"sqlite:///{folder}/history.db", "SQLite", Path(folder) / "history.db")
    from tests.support import postgresql

    programs = postgresql.binaries()
    if programs is None:
        yield Row("history, PostgreSQL", reason="there is no PostgreSQL server: apt-get install postgresql")
        return
    for server in postgresql.serve(programs):
        yield from _rows(server.new_schema(), "PostgreSQL", None)


def _rows(url: str, kind: str, file: Path | None) -> Iterator[Row]:
    from runner.history.database import History

    name = f"history of {CELLS * NIGHTS:,} cells, {kind}"
    entries = [night(number) for number in range(NIGHTS)]
    with History.open(url) as history:
        seconds = [_seconds(lambda entry=entry: history.add(entry))[0] for entry in entries]  # type: ignore[misc]
        yield Row(f"{name}: adding a night of {CELLS}", f"{1e3 * median(seconds[-50:]):.0f} ms")
        yield from _reading(history, name)
    with History.open(url) as history:
        again, _ = _seconds(lambda: [history.add(entry) for entry in entries])
        assert len(history.runs()) == NIGHTS
    yield Row(f"{name}: all {NIGHTS} nights again", f"{again:.1f} s")
    if file is not None:
        yield Row(f"{name}: size", f"{file.stat().st_size / 1e6:.1f} MB")
        words = ("history", CELL.format(2, 7), "--history", url)
        yield Row(f"{name}: `runner history CELL`", f"{_command(words):.2f} s")
        yield Row(f"{name}: `runner history`, {CELLS} cells", f"{_command(('history', '--history', url)):.2f} s")


def _reading(history: "History", name: str) -> Iterator[Row]:
    cell = CELL.format(2, 7)
    trend, points = _seconds(lambda: history.series(cell), 9)
    assert len(points) == NIGHTS
    target = f"{TREND_SECONDS:g} s"
    yield Row(f"{name}: trend of a cell", f"{1e3 * trend:.1f} ms", target=target, met=trend < TREND_SECONDS)
    every, series = _seconds(lambda: list(history.all_series()), 3)
    assert sum(len(of_series) for _, _, of_series in series) == CELLS * NIGHTS
    yield Row(f"{name}: all series", f"{every:.2f} s")


def night(number: int) -> "RunEntry":
    """Return a night: half of its cells are of the base, and each has noise of its own."""
    from runner.history.entries import ChangeEntry, RunEntry

    draw = random.Random(number)
    at = FIRST + timedelta(days=number)
    build = number // 14
    digests = [f"sha256:{random.Random(f'{name}{build}').randbytes(32).hex()}" for name in ("base", "other")]
    cells: list[CellEntry] = []
    for index in range(CELLS // 2):
        base, other = CELL.format(1, index), CELL.format(2, index)
        times = [0.01 * math.exp(draw.gauss(0, 0.01)) for _ in range(2)]
        of_base = _cell(base, times[0], ("1.13.1", digests[0]))
        ratio = times[1] / times[0]
        of_other = replace(
            _cell(other, times[1], (f"2.{build}.0", digests[1])),
            base=base,
            base_release=of_base.release,
            base_digest=of_base.digest,
            ratio=ratio,
            ratio_low=ratio * 0.99,
            ratio_high=ratio * 1.01,
            verdict="same",
        )
        cells += [of_base, of_other]
    changes = [ChangeEntry(cell=cells[2 * index + 1].cell, before="20250101-023000-ab12", rounds=9) for index in (0, 1)]
    return RunEntry(
        run=f"{at:%Y%m%d-%H%M%S}-ab12",
        at=f"{at:%Y-%m-%dT%H:%M:%SZ}",
        kind="night",
        device="GPU-6d1f8a52-0b6c-11ef-9262-0242ac120002",
        device_name="NVIDIA H200",
        backend="docker",
        host="bench",
        driver="580.95.05",
        harness="9f3c2ab4",
        source=f"/srv/reports/runs/{at:%Y%m%d-%H%M%S}-ab12",
        cells=tuple(cells),
        changes=tuple(changes),
    )


def _cell(cell: str, seconds: float, build: tuple[str, str]) -> "CellEntry":
    """Return a cell of a night without a base; ``build`` is the release and the digest of its environment."""
    from runner.history.entries import CellEntry

    low, high = seconds * 0.99, seconds * 1.01
    release, digest = build
    return CellEntry(
        cell=cell, release=release, digest=digest, seconds=seconds, seconds_low=low, seconds_high=high, rounds=5
    )


def _seconds(action: Callable[[], T], times: int = 1) -> tuple[float, T]:
    """Return the median seconds of an action, and its last result."""
    seconds, results = [], []
    for _ in range(times):
        begin = time.perf_counter()
        results.append(action())
        seconds.append(time.perf_counter() - begin)
    return median(seconds), results[-1]


def _command(words: tuple[str, ...], times: int = 3) -> float:
    """Return the median seconds of a command of the program."""
    command = [sys.executable, "-m", "runner", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run() -> None:
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env=environment)

    return _seconds(run, times)[0]
