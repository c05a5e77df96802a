"""What reading a GPU does to a step of a millisecond on a CPU, in turns with not reading it.

The driver is the stand-in of the tests: its answers cost what the binding and a library call cost, and no GPU's time.
The step is in a process of its own and kept to a processor, as everything that is measured is; the reader is where the
runner has it, in a thread of a process that waits, and has opened the driver before the step begins, as a run has done
once for all of its cells. Turns are short, for a machine that others share is slower now and then for tenths of a
second, and have one or two readings at the default rate. Looks are planned as those of a run are, and the last is where
the effect is known.
"""

import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.table import Row, UnmeasurableError
from runner.core import machine
from runner.gpu.telemetry import TelemetrySampler
from runner.matrix import GpuSettings
from runner.stats import intervals as stats
from tests.fakes import driver

TARGET = 0.005
FIRST, MAX_PAIRS = 40, 1600  # pairs of turns
TURN = 0.15  # seconds of steps
STEP = """
import os, sys, time
if sys.argv[1:]:
    os.sched_setaffinity(0, map(int, sys.argv[1:]))
import numpy
left = numpy.random.RandomState(0).rand(160, 160).astype("f4")

def step(times):
    begin = time.perf_counter()
    for _ in range(times):
        left @ left
    return time.perf_counter() - begin

step(200)
times = max(1, round(0.001 / min(step(20) / 20 for _ in range(20))))
for line in sys.stdin:
    end = time.perf_counter() + float(line)
    found = []
    while time.perf_counter() < end:
        found.append(step(times))
    print(sorted(found)[len(found) // 2], flush=True)
"""
"""Prints the median seconds of a step of about 1 ms, for each number of seconds it is told."""


def rows() -> Iterator[Row]:
    """Give the ratio of a step's time with the reader at its default rate to that without."""
    if driver.compiler() is None:
        raise UnmeasurableError("there is no C compiler for the stand-in of NVIDIA's driver")
    rate = GpuSettings().telemetry
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        board = stack.enter_context(closing(driver.StandIn(folder / "gpus")))
        stack.enter_context(driver.in_this_process(driver.built(folder), board))
        board.gpu.busy = 1
        step = stack.enter_context(_step())
        logs, times, end = _in_turns(step, board.uuid, rate)
    low, high = math.expm1(float(end.low[0])), math.expm1(float(end.high[0]))
    without_reader = f"{1e3 * statistics.median(times):.3f} ms without, {len(logs)} pairs of turns"
    ratio = f"{1 + float(np.expm1(end.estimate[0])):.4f} [{1 + low:.4f}, {1 + high:.4f}]"
    met = max(-low, high) <= TARGET
    yield Row(
        f"a step of 1 ms while a GPU is read {rate:g} times a second",
        "",
        without_reader,
        ratio,
        f"within {TARGET:.1%}",
        met,
    )


@contextmanager
def _step() -> Iterator["subprocess.Popen[str]"]:
    """Lend the process that makes steps, on one thread."""
    cpus = machine.spread_over_cores(1, os.sched_getaffinity(0))
    command = [sys.executable, "-c", STEP, *map(str, cpus)]
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=threads) as process:
        try:
            yield process
        finally:
            process.terminate()


def _in_turns(step: "subprocess.Popen[str]", uuid: str, rate: float) -> tuple[list[float], list[float], stats.Interval]:
    """Return the log ratios of pairs of turns, the seconds without the reader, and the interval at the last look."""
    at, chance = stats.looks(FIRST, MAX_PAIRS), random.Random(0)
    logs: list[float] = []
    without: list[float] = []
    while True:
        taken = {read: _turn(step, uuid, rate if read else 0.0) for read in chance.sample([True, False], 2)}
        logs.append(math.log(taken[True] / taken[False]))
        without.append(taken[False])
        if len(logs) in at:
            interval = stats.interval(stats.paired(np.array(logs)), stats.level(len(logs), at, 1 - stats.CONFIDENCE))
            interval = stats.Interval(*map(np.atleast_1d, interval))
            if len(logs) == MAX_PAIRS or max(-interval.low[0], interval.high[0]) <= math.log1p(TARGET):
                return logs, without, interval


def _turn(step: "subprocess.Popen[str]", uuid: str, rate: float) -> float:
    """Return the median seconds of a turn's steps, while a GPU is read or not."""
    assert step.stdin is not None
    assert step.stdout is not None
    watch = TelemetrySampler(uuid, rate) if rate else None
    if watch:
        watch.start()
        while watch.newest() is None and watch.error is None:
            time.sleep(0.001)
    step.stdin.write(f"{TURN}\n")
    step.stdin.flush()
    median = float(step.stdout.readline())
    if watch:
        watch.stop()
        assert watch.error is None, watch.error
    return median
