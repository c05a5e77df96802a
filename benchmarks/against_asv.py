"""The harness against asv on the same NumPy function, in turns in one process.

asv is driven where it times: asv_runner's ``TimeBenchmark``, which is what ``asv run`` calls inside an environment. Its
samples are means over as many calls as take 10 ms; ours are single calls, since these take longer than reading a clock.
"""

import statistics
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.agreement import alternate, row
from benchmarks.table import Row, UnmeasurableError
from runner.harness import script_stack, timing

TURNS = 20
SECONDS = 0.2  # about what asv takes by its own defaults


def rows() -> Iterator[Row]:
    """Give the median of a call by both, and the mean ratio of the turns with its interval."""
    try:
        from asv_runner.benchmarks.time import TimeBenchmark
    except ImportError as error:
        raise UnmeasurableError("asv_runner is not installed") from error
    gates = np.random.default_rng(0).standard_normal((256, 1280)).astype(np.float32)

    def time_tanh() -> None:
        np.tanh(gates)

    def ours() -> float:
        times = script_stack.run(timing.measure(time_tanh, _nothing, time.perf_counter, SECONDS))
        return float(timing.median(times["seconds"]))

    benchmark = TimeBenchmark("time_tanh", time_tanh, [time_tanh])
    times = alternate([ours, lambda: float(statistics.median(benchmark.run()["samples"]))], TURNS)
    yield Row(*row("harness, numpy.tanh", "asv", times))


def _nothing() -> None:
    """Wait for a CPU."""
