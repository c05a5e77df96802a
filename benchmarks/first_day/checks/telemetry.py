"""What reading the GPU does to a step: the same cell in turns, while the runner reads the GPU and while it does not."""

import random
import statistics
import time
from collections.abc import Iterator

from benchmarks.first_day.environments import Bench, planned
from benchmarks.first_day.rows import Row, State, UntestableError
from benchmarks.first_day.settings import Settings
from runner.core.errors import GpuError
from runner.core.model import Cell
from runner.gpu import detect
from runner.gpu.telemetry import TelemetrySampler
from runner.matrix import GpuSettings
from runner.measure.session import Session

SUBJECT = "telemetry on and off"
PAIRS, FEW = 8, 2
SECONDS = 0.5
LIMIT = 0.02  # the change that counts as none
OPEN_SECONDS = 5.0


def rows(settings: Settings) -> Iterator[Row]:
    """Yield the ratio of the medians with and without readings."""
    bench = planned(settings, settings.options(workload=["rnn-step"]))
    spec = bench.newest("torch", "numpy", "jax", "tensorflow")
    cell = bench.first_cell(spec, lambda each: each.case == "lstm-b32-h128")
    gpus = detect.gpus()
    if not gpus:
        raise UntestableError("no GPU to read")
    with bench.held(), bench.session(spec) as session:
        ratios, readings = _in_turns(bench, session, cell, gpus[0].uuid)
    ratio, low, high = statistics.median(ratios), min(ratios), max(ratios)
    rate = GpuSettings().telemetry
    detail = f"{cell.implementation} takes {ratio:.4f} times as long ({low:.3f} to {high:.3f} in {len(ratios)} pairs)"
    held = abs(ratio - 1) <= LIMIT
    unclear = not held and low <= 1 <= high
    values = {"ratio": ratio, "ratios": ratios, "readings": readings, "rate": rate}
    state: State = "held" if held else "not tested" if unclear else "did not hold"
    yield Row(f"a step while the GPU is read {rate:g} times a second", state, detail, values)


def _in_turns(bench: Bench, session: Session, cell: Cell, uuid: str) -> tuple[list[float], int]:
    """Return the ratio of each pair of turns, and how many readings there were; the order within a pair is drawn."""
    case, chance, readings = dict(bench.block(cell).spec), random.Random(0), 0
    ratios: list[float] = []
    for _ in range(FEW if bench.settings.small else PAIRS):
        taken: dict[bool, float] = {}
        for read in chance.sample([True, False], 2):
            sampler = _started(uuid) if read else None
            seconds = 0.05 if bench.settings.small else SECONDS
            reply = bench.ask(session, cell, case, seconds=seconds)
            if sampler:
                sampler.stop()
                readings += len(sampler.readings)
            if reply["status"] != "ok":
                raise UntestableError(f"the cell fails: {reply['class']}: {reply['reason']}")
            taken[read] = statistics.median(reply["seconds"])
        ratios.append(taken[True] / taken[False])
    return ratios, readings


def _started(uuid: str) -> TelemetrySampler:
    sampler = TelemetrySampler(uuid, GpuSettings().telemetry)
    sampler.start()
    until = time.monotonic() + OPEN_SECONDS
    while sampler.newest() is None and sampler.error is None and time.monotonic() < until:
        time.sleep(0.01)
    if sampler.newest() is None:
        raise sampler.error or GpuError("the driver gave no reading")
    return sampler
