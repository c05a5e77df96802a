"""Read a GPU while it computes, and summarise the readings as facts of the cell that was measured."""

import bisect
import itertools
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from statistics import fmean, median
from typing import Any

from runner.core.errors import GpuError
from runner.gpu import nvml
from runner.gpu.types import GpuReading, held_back

OPEN_SECONDS = 10.0  # for a driver without persistence mode
PASSING = 5  # failed readings in a row that are tolerated: a busy driver refuses some
LEAST_COUNTED = 0.001  # seconds; an increase that setting a clock does not cause


class TelemetrySampler:
    """Reads a GPU in a thread, so that a hanging driver does not stop the run.

    Attributes:
        error: why the readings ended early; None while they continue.
        idle: the idle draw in watts; None if it is unknown.
    """

    def __init__(self, uuid: str, rate: float) -> None:
        """Create a sampler of ``rate`` readings per second, which has not started."""
        self.uuid = uuid
        self.pause = 1.0 / rate
        self.error: GpuError | None = None
        self.idle: float | None = None
        self.readings: list[GpuReading] = []
        self.last: GpuReading | None = None
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._read, name="watch", daemon=True)

    def start(self) -> None:
        """Start reading."""
        self.thread.start()

    def stop(self) -> None:
        """Stop reading; do not wait for a driver that hangs."""
        self.stopped.set()
        with suppress(RuntimeError):  # a signal interrupted the start
            self.thread.join(2.0)

    def _read(self) -> None:
        failed = 0
        try:
            with nvml.opened() as driver:
                device = driver.device(self.uuid)
                while not self.stopped.is_set():
                    try:
                        reading = device.reading()
                    except GpuError as error:
                        failed += 1
                        if error.kind == "lost" or failed > PASSING:
                            raise
                    else:
                        failed = 0
                        with self.lock:
                            self.readings.append(reading)
                    self.stopped.wait(self.pause)
        except GpuError as error:
            self.error = error

    def measure_idle(self, seconds: float) -> None:
        """Measure the idle draw for some seconds, before any work; the driver may be slow to open."""
        until = time.monotonic() + OPEN_SECONDS
        while self.newest() is None and self.error is None and time.monotonic() < until:
            self.stopped.wait(self.pause)
        self.stopped.wait(seconds)
        with self.lock:
            self.idle = idle_watts(self.readings)

    def _wait_for_reading_after(self, moment: float) -> None:
        """Wait up to two pauses for a reading after a moment, so that the energy at that moment can be interpolated."""
        patience = time.monotonic() + 2 * self.pause
        while self.error is None and time.monotonic() < patience:
            newest = self.newest()
            if newest is not None and newest.at >= moment:
                return
            self.stopped.wait(self.pause / 4)

    def newest(self) -> GpuReading | None:
        """Return the last reading; None before the first."""
        with self.lock:
            return self.readings[-1] if self.readings else self.last

    def take_facts(self, reply: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the facts of the readings since the last call, taken for ``reply``."""
        self._wait_for_reading_after(float(reply.get("ended", 0.0)))
        with self.lock:
            readings, self.readings = self.readings, []
        before, self.last = self.last, readings[-1] if readings else self.last
        joules = (
            None
            if self.uuid.startswith(nvml.SLICE)
            else joules_per_step([*([before] if before else []), *readings], reply, self.idle)
        )
        energy_facts = {} if joules is None else {"joules_per_step": joules, "idle_watts": self.idle}
        return {**facts(readings, before), **energy_facts}


def facts(readings: Sequence[GpuReading], before: GpuReading | None = None) -> dict[str, Any]:
    """Return the facts about a GPU for the record of a cell.

    Only readings while it computed count, without the first of a row: a clock that was idle still rises. So a cell that
    takes less than two readings has no clocks.

    Args:
        readings: in order.
        before: the last reading of the previous cell, as the start of the counters.
    """
    busy = [reading for past, reading in itertools.pairwise(readings) if not past.idle and not reading.idle]
    reasons = [held_back(reading.reasons or 0) for reading in busy]
    counted = _counter_increases(readings, before)
    seen = (
        ("clock_mhz", _low_median_high([reading.sm for reading in busy])),
        ("memory_clock_mhz", _low_median_high([reading.memory for reading in busy])),
        ("power_watts", _mean([reading.watts for reading in busy])),
        (
            "temperature_celsius",
            max((reading.celsius for reading in busy if reading.celsius is not None), default=None),
        ),
    )
    values: dict[str, Any] = {name: value for name, value in seen if value is not None}
    if busy or counted:
        values["throttled"] = max(sum(map(bool, reasons)), int(bool(counted)))
        values["held_back"] = sorted({reason for reading in reasons for reason in reading} | set(counted))
    return values


def _counter_increases(readings: Sequence[GpuReading], before: GpuReading | None) -> Mapping[str, float]:
    """Return throttle reason -> seconds, from the driver's counters, which also see what falls between readings."""
    every = [*([before] if before else []), *readings]
    if len(every) < 2:
        return {}
    first, last = every[0].counted, every[-1].counted
    increases = {name: seconds - first[name] for name, seconds in last.items() if name in first}
    return {name: seconds for name, seconds in increases.items() if seconds > LEAST_COUNTED}


def _low_median_high(values: Sequence[int | None]) -> list[float] | None:
    """Return the lowest, the median and the highest value; None without values."""
    known = [value for value in values if value is not None]
    return [min(known), median(known), max(known)] if known else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), 1) if known else None


LEAST_ENERGY_SECONDS = 0.5  # of samples: the driver updates its counter ten to fifty times a second
DECIMALS = 6


def idle_watts(readings: Sequence[GpuReading]) -> float | None:
    """Return the mean draw of an idle GPU; None if it was not idle or does not report its draw."""
    draws = [reading.watts for reading in readings if reading.watts is not None]
    if not draws or not all(reading.idle for reading in readings):
        return None
    return round(fmean(draws), 1)


def joules_per_step(readings: Sequence[GpuReading], reply: Mapping[str, Any], idle: float | None) -> float | None:
    """Return the joules of one step above the idle draw.

    None if it cannot be computed: the idle draw or the energy is unknown, the samples took less than
    LEAST_ENERGY_SECONDS, or they are not covered by the readings.

    Args:
        readings: in order.
        reply: a good measurement's ``seconds`` and ``batch``, and ``ended``, when the last sample did, in seconds of
            the monotonic clock, which on Linux is one for all processes of a machine (clock_gettime(2)).
        idle: watts.
    """
    known = [(reading.at, reading.joules) for reading in readings if reading.joules is not None]
    if idle is None or len(known) < 2 or "ended" not in reply or not reply.get("seconds"):
        return None
    steps = int(reply.get("batch", 1)) * len(reply["seconds"])
    length = sum(reply["seconds"]) * int(reply.get("batch", 1))
    end = float(reply["ended"])
    if length < LEAST_ENERGY_SECONDS or not known[0][0] <= end - length < end <= known[-1][0]:
        return None
    joules = _at(known, end) - _at(known, end - length) - idle * length
    return round(float(joules / steps), DECIMALS)


def _at(known: Sequence[tuple[float, float]], moment: float) -> float:
    """Return the value of a counter at a moment, by linear interpolation between two readings."""
    after = min(max(bisect.bisect_left(known, (moment,)), 1), len(known) - 1)
    (begin, low), (end, high) = known[after - 1], known[after]
    return low + (high - low) * (moment - begin) / (end - begin) if end > begin else high
