"""A run folder of 100,000 records: the seconds and the memory of ``report``, ``compare`` and ``check``.

``compare`` and ``check`` are timed after a first run, which compiles modules as pip does at installation. Where
``PYTHONDONTWRITEBYTECODE`` is set, every process would compile pandas again, which takes more than a second.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.table import Row
from runner.core.model import Cell

ROOT = Path(__file__).parent.parent
ENVIRONMENTS, SLUGS, CASES, ROUNDS, SAMPLES = 4, 5, 50, 100, 20
RECORDS = ENVIRONMENTS * SLUGS * CASES * ROUNDS
MOST_SECONDS = 5.0
REPEATS = 5
"""Timed runs of a command; the median counts."""
NAMES = tuple(f"torch-2.{number}" for number in range(ENVIRONMENTS))
COMMANDS = {
    "report": ("report",),
    "compare": ("compare", NAMES[0], NAMES[1]),
    "check": ("check",),
}


def rows() -> Iterator[Row]:
    """Give the seconds and the memory of each command."""
    with tempfile.TemporaryDirectory() as folder:
        reports = Path(folder)
        write_run(reports)
        for name, words in COMMANDS.items():
            runs = 1 if name == "report" else 1 + REPEATS
            repeats = [timed(words, reports) for _ in range(runs)][-REPEATS:]
            seconds = statistics.median(seconds for seconds, _ in repeats)
            peak_bytes = max(peak_bytes for _, peak_bytes in repeats)
            target = f"{MOST_SECONDS:g} s" if name == "compare" else ""
            yield Row(
                f"{name}, {RECORDS:,} records",
                f"{seconds:.2f} s, {peak_bytes / 1e6:.0f} MB",
                target=target,
                met=seconds < MOST_SECONDS if target else None,
            )


def timed(words: tuple[str, ...], reports: Path) -> tuple[float, float]:
    """Return the seconds and the peak memory in bytes of a command of the program."""
    command = [sys.executable, "-m", "runner", *words, "--reports", str(reports)]
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(reports / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    code = process.returncode = os.waitstatus_to_exitcode(status)
    if code not in {0, 1}:  # 1: `check` has serious issues
        message = f"{' '.join(command)} ended with {code}"
        raise RuntimeError(message)
    return seconds, usage.ru_maxrss * 1024.0


def write_run(reports: Path) -> None:
    """Write a run as the runner does, but for the syncs, of which there are two for each record."""
    import numpy as np

    from runner.core.model import Record
    from runner.store.checksums import file_checksum
    from runner.store.documents import JOURNAL, VERSION, text
    from runner.store.journal_writer import line_of
    from runner.store.records import encode
    from runner.store.run import Run

    draw = np.random.default_rng(0)
    cells = [
        Cell(
            environment=name,
            implementation=f"slug-{slug}",
            workload="rnn-step",
            case=f"lstm-b{case}-h128",
            phase="train",
        )
        for case in range(CASES)
        for name in NAMES
        for slug in range(SLUGS)
    ]
    planned = [
        {"id": cell.id, "environment": cell.environment, "kind": "fused", "framework": "torch", "verdict": "run"}
        for cell in cells
    ]
    run = Run.create(reports, {"cells": planned}, {}, {"cpu": "a processor"}, {}, datetime.now(UTC))
    run.write_environments({name: {"framework": "torch", "release": name[6:]} for name in NAMES})
    with (run.path / JOURNAL).open("ab") as journal:
        number = 1
        for round_number in range(1, ROUNDS + 1):
            for cell in cells:
                seconds = tuple((0.01 * np.exp(draw.normal(0, 0.02, SAMPLES))).tolist())
                record = Record(
                    cell=cell,
                    run=run.id,
                    round=round_number,
                    attempt=1,
                    status="ok",
                    failure=None,
                    reason=None,
                    seconds=seconds,
                    warmup=seconds[:5],
                    compile_seconds=0.5,
                    loss=(2.0, 1.5, 1.25),
                    reference_loss=(2.0, 1.5, 1.25),
                    facts=_facts(cell, round_number),
                )
                number += 1
                content = text(encode(record, VERSION)).encode()
                file = f"records/{cell.id.replace('/', '~')}.{round_number}.1.json"
                (run.path / file).write_bytes(content)
                entry = {"cell": cell.id, "round": round_number, "attempt": 1, "status": "ok", "file": file}
                journal.write(line_of(number, "measured", {**entry, "sha256": file_checksum(content)}))


def _facts(cell: Cell, round_number: int) -> dict[str, Any]:
    """Return facts like those of a network that PyTorch measured on a CPU."""
    return {
        "environment": cell.environment,
        "framework": "torch",
        "release": cell.environment[6:],
        "version": cell.environment[6:],
        "kind": "fused",
        "backend": "venv",
        "digest": "sha256:" + "ab" * 32,
        "device": "cpu",
        "device_uuid": None,
        "driver": None,
        "threads": 2,
        "precision": "fp32",
        "protocol": "aligned",
        "clocks": None,
        "harness": "8c162f2958b2",
        "server": f"{cell.environment}#{round_number}",
        "python": "3.11.7",
        "numpy": "2.4.6",
        "import_seconds": 0.2,
        "import_cpu_seconds": 0.2,
        "forward_error": 5e-8,
        "loss_error": 3e-7,
        "gradient_error": 3e-7,
        "gradient_errors": {"bias": 2e-7, "kernel": 3e-7, "recurrent": 2e-7},
        "data_digest": "fa8499c2d9ac4e24",
        "batch": 1,
        "clock_seconds": 1.3e-7,
        "warmup_seconds": 0.3,
        "steady": True,
        "swapped_bytes": 0,
        "build_seconds": 0.3,
        "check_seconds": 0.01,
        "child_seconds": 2.9,
        "round_seconds": 3.0,
        "turns": [2] * (SAMPLES // 2),
        "turns_with": f"{round_number}/0",
        "leads": [0.01] * (SAMPLES // 2),
        "cpus": [0, 1],
        "load": 0.8,
        "others_busy": 0.0,
        "os_threads": 4,
        "minor_faults_per_call": 0.01,
        "major_faults_per_call": 0.0,
        "voluntary_switches_per_call": 0.0,
        "involuntary_switches_per_call": 0.1,
        "peak_resident_bytes": 1 << 28,
        "huge_page_bytes": 0,
        "stolen": 0.0,
    }
