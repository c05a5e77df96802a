"""How long 1,000,000 samples in 10,000 cells take from the run folder to the HTML report, and how much memory.

Making the folder is not counted. Each report is made in a process of its own, whose memory is counted from its start.
The peer reads the same samples from one Parquet file with pandas and writes a plain table of the cells' medians as
HTML: no checks, no comparison, no charts.
"""

import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.table import Row
from runner.core.model import Cell

ROOT = Path(__file__).parent.parent
CASES, ENVIRONMENTS, SLUGS, ROUNDS, SAMPLES = 100, 10, 10, 3, 34
TURNS = 3
SAMPLES_FILE = "samples.parquet"
MOST_SECONDS, MOST_BYTES = 5.0, 500e6


def rows() -> Iterator[Row]:
    """Give the seconds and the memory from a large run folder to its page."""
    with tempfile.TemporaryDirectory() as folder:
        _child("make", folder)
        both = [(_child("ours", folder), _child("peer", folder)) for _ in range(TURNS)]
    ours, peer = (
        {name: statistics.median(measured[k][name] for measured in both) for name in both[0][k]} for k in (0, 1)
    )
    samples, cells = f"{ours['samples']:,.0f}", f"{ours['cells']:,.0f}"
    yield Row(
        f"{samples} samples in {cells} cells to HTML",
        f"{ours['seconds']:.2f} s",
        f"pandas, medians alone {peer['seconds']:.2f} s",
        ours["seconds"] / peer["seconds"],
        f"{MOST_SECONDS:g} s",
        ours["seconds"] < MOST_SECONDS,
    )
    yield Row(
        "the same, memory",
        f"{ours['bytes'] / 1e6:.0f} MB",
        f"pandas, medians alone {peer['bytes'] / 1e6:.0f} MB",
        ours["bytes"] / peer["bytes"],
        f"{MOST_BYTES / 1e6:.0f} MB",
        ours["bytes"] < MOST_BYTES,
    )


def _child(what: str, folder: str) -> dict[str, float]:
    """Return what a process of its own prints of one step."""
    words = [sys.executable, "-m", "benchmarks.report_size", what, folder]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def make(reports: Path) -> dict[str, float]:
    """Write a run, and its samples as Parquet."""
    from runner.analysis import dataset
    from runner.store import samples as frames
    from runner.store.run import runs

    _write_run(reports)
    frames.write(dataset.load_dataset(runs(reports)[0]).samples, reports / SAMPLES_FILE)
    return {}


def _write_run(reports: Path) -> None:
    """Write a run: 100 cases x 10 environments x 10 implementations, 3 rounds of 34 samples each."""
    import numpy as np

    from runner.core.model import Record
    from runner.store import records
    from runner.store.checksums import file_checksum
    from runner.store.documents import text
    from runner.store.journal_writer import line_of
    from runner.store.run import Run

    draw = np.random.default_rng(0)
    names = [f"torch-2.{number}" for number in range(ENVIRONMENTS)]
    cells = [
        Cell(
            environment=name,
            implementation=f"slug-{slug}",
            workload="rnn-step",
            case=f"lstm-b{case}-h128",
            phase="train",
        )
        for case in range(CASES)
        for name in names
        for slug in range(SLUGS)
    ]
    planned = [{"id": cell.id, "kind": "fused", "framework": "torch", "verdict": "run"} for cell in cells]
    run = Run.create(reports, {"cells": planned}, {}, {"cpu": "a processor"}, {}, datetime.now(UTC))
    run.write_environments({name: {"framework": "torch", "release": name[6:]} for name in names})
    lines: list[bytes] = []
    for number in range(1, ROUNDS + 1):
        for cell in cells:
            seconds = tuple((0.01 * np.exp(draw.normal(0, 0.02, SAMPLES))).tolist())
            facts = _facts(cell)
            record = Record(cell=cell, run=run.id, round=number, status="ok", seconds=seconds, facts=facts)
            file = f"records/{cell.id.replace('/', '~')}.{number}.1.json"
            content = text(records.encode(record, 1)).encode()
            (run.path / file).write_bytes(content)
            entry = {"cell": cell.id, "round": number, "attempt": 1, "status": "ok", "file": file}
            lines.append(line_of(len(lines) + 1, "measured", {**entry, "sha256": file_checksum(content)}))
    (run.path / "journal.jsonl").write_bytes(b"".join(lines))


def _facts(cell: Cell) -> dict[str, object]:
    known = {"device": "cpu", "kind": "fused", "framework": "torch", "release": cell.environment[6:], "threads": 2}
    return {**known, "backend": "venv", "loss_error": 1e-7, "gradient_error": 1e-6}


def ours(reports: Path) -> dict[str, float]:
    """Make the page as ``runner report`` does; what it imports is counted."""
    begin, used = time.perf_counter(), time.process_time()
    from runner.analysis import dataset
    from runner.analysis.analyse import analyse
    from runner.cli import console
    from runner.report import html
    from runner.report import page as view
    from runner.store.run import runs

    gc.set_threshold(*console.GARBAGE)
    loaded = time.perf_counter()
    results = dataset.load_dataset(runs(reports)[0])
    merged = time.perf_counter()
    analysis = analyse(results)
    analysis.comparisons  # noqa: B018  it is computed when it is first asked for
    compared = time.perf_counter()
    page = html.page_text(view.arrange(analysis))
    done = time.perf_counter()
    steps = {"import": loaded - begin, "merge": merged - loaded, "compare": compared - merged, "html": done - compared}
    steps_text = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in steps.items())
    busy = time.process_time() - used
    sys.stderr.write(f"report: {steps_text}; {busy:.2f} s of processor time; a page of {len(page) / 1e6:.1f} MB\n")
    cells = float(results.rounds["cell"].nunique())
    return {"seconds": done - begin, "bytes": _peak(), "samples": float(len(results.samples)), "cells": cells}


def peer(reports: Path) -> dict[str, float]:
    """Read the samples with pandas and write the medians of the cells as HTML."""
    begin = time.perf_counter()
    import pandas as pd

    samples = pd.read_parquet(reports / SAMPLES_FILE)
    samples.groupby("cell", observed=True)["seconds"].median().to_frame().to_html()
    return {"seconds": time.perf_counter() - begin, "bytes": _peak()}


def _peak() -> float:
    """Return the most bytes that this process has held; ``ru_maxrss`` would begin with what its parent held."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024.0 * int(line.split()[1])
    raise RuntimeError("the kernel does not tell VmHWM")


if __name__ == "__main__":
    print(json.dumps({"make": make, "ours": ours, "peer": peer}[sys.argv[1]](Path(sys.argv[2]))))
