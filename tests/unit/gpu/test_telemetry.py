"""What readings of a GPU say of a step: its clocks, and what held it back."""

from typing import Any

from runner.gpu.telemetry import facts
from runner.gpu.types import GpuReading

IDLE = GpuReading(sm=345, memory=2619, reasons=1, watts=60.0, celsius=40)


def busy(sm: int = 1500, **more: Any) -> GpuReading:
    return GpuReading(sm=sm, memory=2619, reasons=more.pop("reasons", 0), watts=300.0, celsius=60, **more)


def test_readings_while_it_computes_are_facts_and_the_first_of_a_row_is_not() -> None:
    rising = busy(900)
    values = facts([IDLE, rising, busy(1500), busy(1485), IDLE, rising, IDLE])
    assert values["clock_mhz"] == [1485, 1492.5, 1500]
    assert values["memory_clock_mhz"] == [2619, 2619, 2619]
    assert (values["power_watts"], values["temperature_celsius"]) == (300.0, 60)
    assert (values["throttled"], values["held_back"]) == (0, [])


def test_nothing_read_says_nothing() -> None:
    assert facts([]) == facts([IDLE]) == facts([IDLE, busy()]) == facts([IDLE, IDLE]) == {}
    assert facts([GpuReading(), GpuReading()]) == {"throttled": 0, "held_back": []}


def test_a_clock_that_is_held_back_counts() -> None:
    values = facts([busy(), busy(reasons=0x4), busy(reasons=0x60), busy()])
    assert (values["throttled"], values["held_back"]) == (2, ["heat", "its power limit"])


def test_a_counter_sees_what_falls_between_readings() -> None:
    before, after = (
        busy(counted={"heat": 1.0, "the power brake": 0.0}),
        busy(counted={"heat": 1.5, "the power brake": 0.0}),
    )
    assert facts([before, after])["held_back"] == ["heat"]
    assert facts([after], before) == {"throttled": 1, "held_back": ["heat"]}
    assert facts([before, busy(counted={"heat": 1.0005})])["throttled"] == 0
