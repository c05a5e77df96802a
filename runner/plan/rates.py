"""Estimate how fast a device computes, before anything is measured on it.

On a GPU, an operation takes its arithmetic at a share of the data sheet's peak rate, plus the time to launch it. With
EFFICIENCY and LAUNCH_SECONDS, the estimate is between 0.2 and 6 times each of the 312 published step times whose board
is in ``peaks.csv``, by the median 1.2 to 1.9 times for each kind of implementation
(``tests/unit/plan/test_estimate.py``). They are of 2016 to 2018, on boards from the GTX TITAN X to the Tesla P40.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from runner.catalog.hardware.peaks import PRECISIONS, peak
from runner.core.model import Device, Gpu

FLOPS_PER_THREAD = 3e10  # per second, as these networks reached on one thread of a server CPU of 2024
CPU_LAUNCH_SECONDS = 2e-5  # the operations of one time step of one layer, at least
FORK_SECONDS = 0.1  # to fork, and to make the data and the weights
SIDE_BY_SIDE = 0.6
"""Seconds that pass on a CPU for each second in which a process imports and builds: 0.54 to 0.67 in 15 rounds of four
real runs on two cores, where two processes work at a time."""
SERVER_SECONDS = 0.7  # to start the container of a server, and its first answer: 0.4 to 1 s in runs of 5 to 14 servers


class Preparation(NamedTuple):
    """What a process takes before it computes, in seconds.

    Attributes:
        importing: to import its framework.
        building: to build a small network of a user, and to call it once, which traces and compiles.
    """

    importing: float
    building: float


NO_PREPARATION = Preparation(0.0, 0.0)
PREPARATION: Mapping[str, Mapping[int, Preparation]] = {
    "jax": {0: Preparation(1.6, 0.8)},
    "keras": {0: Preparation(2.2, 1.0), 3: Preparation(4.0, 1.0)},
    "numpy": {0: Preparation(0.4, 0.05)},
    "tensorflow": {0: Preparation(3.5, 0.5), 2: Preparation(4.2, 0.5)},
    "theano": {0: Preparation(1.5, 2.0)},
    "torch": {0: Preparation(1.0, 0.2), 2: Preparation(3.0, 0.2)},
}
"""Framework -> first number of the release -> typical values of the records of real runs.

They are ``build_seconds`` of plain processes, which import, and of forked ones. On 2 cores of a shared Xeon at 2.8 GHz,
two processes at a time took half to twice as long, as their libraries were in memory or not.
``python -m benchmarks.estimates RUN...`` compares plans with runs.
"""
OTHER_PREPARATION = Preparation(1.0, 0.5)  # of frameworks that only a user's matrix has

EFFICIENCY = 0.2
"""Share of a GPU's peak rate: large products reach 0.4 to 0.8, recurrent networks 0.05 to 0.5 (published figures)."""
UNKNOWN_BOARD = 6.69e12
"""Operations per second: the slowest board of ``peaks.csv``, in single precision. Also of slices (MIG) of a board."""
LAUNCH_SECONDS: Mapping[str, float] = {"vendor": 1e-5, "fused": 5e-5, "flexible": 1e-4}
"""Kind of implementation -> seconds to launch one time step of one layer on a GPU: cuDNN launches all steps at once,
a fused cell a few kernels for each step, and a loop in the framework's language a dozen."""
CALL_SECONDS = 2e-5  # to launch one operation on a GPU and to wait for it
START_SECONDS: Mapping[str, float] = {"torch": 3.0}
"""Framework -> seconds until a process has the GPU's context and its libraries, and has chosen its algorithms. An
estimate for an H200 by an engineer who had none at hand; not measured."""
OTHER_START_SECONDS = 6.0  # of other frameworks: TensorFlow, and JAX, which is imported in each process
HEADROOM = 2.0
"""Nothing is faster than this many times the peak rate: a published figure has 1.1 times, at a boosted clock."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)  # by identity, so that functions of it can be cached
class Rates:
    """How fast a device computes.

    Attributes:
        device: ``cpu`` or ``cuda``.
        operations: precision -> operations per second.
        launch_seconds: kind of implementation -> seconds to launch one time step of one layer.
        call_seconds: seconds to launch one operation.
        start_seconds: framework -> seconds until a forked process can compute; the empty name stands for all others.
        side_by_side: seconds that pass for each second in which a process prepares; 1 where one prepares at a time.
    """

    device: Device
    operations: Mapping[str, float]
    launch_seconds: Mapping[str, float]
    call_seconds: float
    start_seconds: Mapping[str, float]
    side_by_side: float = 1.0

    def start(self, framework: str) -> float:
        """Return the seconds until a forked process of a framework can compute."""
        return self.start_seconds.get(framework, self.start_seconds[""])


@cache
def cpu_rates(threads: int) -> Rates:
    """Return the rates of a CPU with a number of threads, which are those of real runs on one."""
    return Rates(
        device="cpu",
        operations=dict.fromkeys(PRECISIONS, FLOPS_PER_THREAD * threads),
        launch_seconds=dict.fromkeys(LAUNCH_SECONDS, CPU_LAUNCH_SECONDS),
        call_seconds=CPU_LAUNCH_SECONDS,
        start_seconds={"": FORK_SECONDS},
        side_by_side=SIDE_BY_SIDE,
    )


@cache
def gpu_rates(name: str) -> Rates:
    """Return the rates of a GPU by its name in NVML."""
    return Rates(
        device="cuda",
        operations={precision: EFFICIENCY * rate for precision, rate in _peaks(name, UNKNOWN_BOARD).items()},
        launch_seconds=LAUNCH_SECONDS,
        call_seconds=CALL_SECONDS,
        start_seconds={**START_SECONDS, "": OTHER_START_SECONDS},
    )


@cache
def fastest_rates(name: str) -> Rates | None:
    """Return rates that no program exceeds on a GPU; None if nothing is known of the board."""
    if peak(name) is None:
        return None
    operations = {precision: HEADROOM * rate for precision, rate in _peaks(name, 0.0).items()}
    nothing = dict.fromkeys(LAUNCH_SECONDS, 0.0)
    return replace(
        gpu_rates(name), operations=operations, launch_seconds=nothing, call_seconds=0.0, start_seconds={"": 0.0}
    )


def rates(gpu: Gpu | None, threads: int) -> Rates:
    """Return the rates of a GPU, or of a CPU if it is None."""
    return gpu_rates(gpu.name) if gpu else cpu_rates(threads)


def preparation(framework: str, release: tuple[float, ...]) -> Preparation:
    """Return what a process of a release takes before it computes."""
    by_release = PREPARATION.get(framework, {0: OTHER_PREPARATION})
    return by_release[max(first for first in by_release if first <= max(release[:1], default=0))]


def _peaks(name: str, unknown: float) -> Mapping[str, float]:
    """Return the peak rate of a board in each precision: that of single precision where the data sheet has no other."""
    board = peak(name)
    known = board.operations if board else {}
    return {precision: known.get(precision, known.get("fp32", unknown)) for precision in PRECISIONS}
