"""What 10,000 rounds in one run leave behind in the runner: memory, descriptors, threads, and seconds per round.

The loop, the journal, the records and the channels are the real ones. The servers are stand-ins that answer at once:
two environments with one cell each, replaced every RESTART rounds. The run is made in a process of its own.
``python -m benchmarks.long_run ROUNDS`` prints its readings.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.table import Row
from runner.backends.host import HostBackend
from runner.catalog.cases import CASES
from runner.core.model import Block, Cell, Event, Measurement, Plan, PlannedCell, Provisioned, RoundTimes
from runner.core.progress import Progress
from runner.gpu.device import DeviceSession
from runner.session.execution.assignment import assign_devices
from runner.session.execution.header import start_run
from runner.session.execution.recorder import RunRecorder
from runner.session.execution.side_by_side import execute
from runner.session.preparation import RunOrigin, RunSettings
from tests.support import hostile_server

ROOT = Path(__file__).parent.parent
ROUNDS, RESTART = 10_000, 100
MARKS = (0.1, 0.5, 1.0)  # shares of the rounds after which is read
CASE = "rnn-step/rnn-b32-h128"
MORE_BYTES = 10e6
SLOWER = 1.1  # the last half of the rounds against the rounds from MARKS[0] to the middle

Reading = Mapping[str, float]


def rows() -> Iterator[Row]:
    """Give the growth of the runner from the first reading to the last one."""
    words = [sys.executable, "-m", "benchmarks.long_run", str(ROUNDS)]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    first, middle, last = (json.loads(line) for line in done.stdout.splitlines())
    grown = last["bytes"] - first["bytes"]
    name = f"memory after {ROUNDS:,} rounds, and more than after {first['rounds']:,.0f}"
    text = f"{last['bytes'] / 1e6:.0f} MB, {grown / 1e6:+.1f} MB"
    yield Row(name, text, target=f"+{MORE_BYTES / 1e6:g} MB", met=grown <= MORE_BYTES)
    for kind in ("descriptors", "threads", "folders"):
        yield Row(
            f"  {kind}",
            f"{last[kind]:.0f}, {last[kind] - first[kind]:+.0f}",
            target="+0",
            met=last[kind] <= first[kind],
        )
    early = (middle["seconds"] - first["seconds"]) / (middle["rounds"] - first["rounds"])
    late = (last["seconds"] - middle["seconds"]) / (last["rounds"] - middle["rounds"])
    yield Row(
        "  a round of the last half",
        f"{late * 1e3:.1f} ms",
        f"earlier ones {early * 1e3:.1f} ms",
        late / early,
        f"{SLOWER:g}",
        late <= SLOWER * early,
    )


class ReadingRecorder(RunRecorder):
    """Reads this process after some rounds, and prints it."""

    marks: tuple[int, ...] = ()
    begin = time.monotonic()

    def record(self, event: Event, elapsed: float, clocks: DeviceSession) -> None:
        """Record an event; after a round that is a mark, print a reading."""
        super().record(event, elapsed, clocks)
        if isinstance(event, RoundTimes) and event.round in self.marks:
            print(
                json.dumps({"rounds": event.round, "seconds": time.monotonic() - self.begin, **reading()}), flush=True
            )


def reading() -> Reading:
    """Return the resident bytes, open descriptors and threads of this process, and the servers' folders."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "bytes": pages * os.sysconf("SC_PAGE_SIZE"),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": threading.active_count(),
        "folders": len(list(Path(tempfile.gettempdir()).glob("matrix-runner-*"))),
    }


def measure(rounds: int, folder: Path) -> None:
    """Measure two environments for some rounds, and print readings."""
    tempfile.tempdir = str(folder)
    interpreter = folder / "python"
    interpreter.write_text(f"#!/bin/sh\nexec {sys.executable} -I {hostile_server.__file__} sound\n")
    interpreter.chmod(0o755)
    backend = HostBackend(str(interpreter), folder, "numpy")
    workload, case = CASE.split("/")
    parts = {"implementation": "numpy-loop", "workload": workload, "case": case, "phase": "train"}
    cells = tuple(Cell(environment=name, **parts) for name in ("old", "new"))
    plan = Plan(
        device="cpu",
        backend="host",
        measurement=Measurement(rounds=rounds, seconds=0.05, restart=RESTART),
        cells=tuple(PlannedCell(cell=cell, device="cpu", kind="flexible", seconds=1.0) for cell in cells),
        blocks=(Block(case_id=CASE, spec=dict(CASES[CASE]), device="cpu", cells=cells),),
        frameworks=dict.fromkeys(("old", "new"), "numpy"),
    )
    ready = {
        cell.environment: Provisioned(
            environment=cell.environment,
            framework="numpy",
            handle=str(interpreter),
            digest="",
            seconds=0.0,
            cached=True,
        )
        for cell in cells
    }
    settings = RunSettings(file=folder / "matrix.yaml", reports=folder / "reports", cache=folder / "cache")
    progress = Progress(lambda _: None)
    assignment = assign_devices(plan, (), settings, progress)
    recorder = ReadingRecorder(assignment.plan, start_run(assignment.plan, settings, RunOrigin(), (), ready), progress)
    recorder.marks = tuple(max(1, int(share * rounds)) for share in MARKS)
    execute(assignment, backend, ready, recorder, settings)
    assert recorder.totals().good == len(cells)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        measure(int(sys.argv[1]), Path(name))
