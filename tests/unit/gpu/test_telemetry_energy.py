"""Energy of a step, from a counter that was read now and then."""

import pytest

from runner.gpu.telemetry import TelemetrySampler, idle_watts, joules_per_step
from runner.gpu.types import IDLE, GpuReading

SECOND = [GpuReading(at=10.0 + k / 10, joules=500.0 + 30.0 * k) for k in range(11)]  # 300 W from 10 to 11 s


def reply(ended: float = 10.9, steps: int = 80, batch: int = 1) -> dict[str, object]:
    """Return a good measurement of steps of 10 ms."""
    return {"seconds": [0.01] * (steps // batch), "batch": batch, "ended": ended}


@pytest.mark.parametrize("batch", [1, 4])
def test_a_step_has_its_share_without_the_idle_draw(batch: int) -> None:
    assert joules_per_step(SECOND, reply(batch=batch), 0.0) == pytest.approx(3.0)
    assert joules_per_step(SECOND, reply(batch=batch), 100.0) == pytest.approx(2.0)


def test_a_window_between_two_readings_is_on_the_line_between_them() -> None:
    rising = [GpuReading(at=0.0, joules=0.0), GpuReading(at=1.0, joules=100.0), GpuReading(at=2.0, joules=500.0)]
    assert joules_per_step(rising, {"seconds": [1.0], "ended": 1.5}, 0.0) == pytest.approx(250.0)


@pytest.mark.parametrize(
    ("readings", "answer", "idle"),
    [
        (SECOND, reply(), None),  # the idle draw is not known
        (SECOND, reply(ended=12.0), 0.0),  # measured when nobody read
        (SECOND, reply(ended=10.5), 0.0),  # begun before
        (SECOND, reply(steps=40), 0.0),  # over too soon for such a counter
        (SECOND, {"status": "failed"}, 0.0),
        ([GpuReading(at=1.0), GpuReading(at=3.0)], {"seconds": [1.0], "ended": 2.5}, 0.0),  # before Volta
        (SECOND[:1], reply(), 0.0),
    ],
)
def test_what_cannot_be_known_is_not_said(readings: list[GpuReading], answer: dict[str, object], idle: float) -> None:
    assert joules_per_step(readings, answer, idle) is None


def test_the_idle_draw_is_known_only_of_a_gpu_that_had_nothing_to_do() -> None:
    resting = [GpuReading(watts=60.0, reasons=IDLE), GpuReading(watts=62.0, reasons=IDLE)]
    assert idle_watts(resting) == 61.0
    assert idle_watts([*resting, GpuReading(watts=300.0)]) is None
    assert idle_watts([GpuReading(reasons=IDLE)]) is None
    assert idle_watts([]) is None


@pytest.mark.parametrize(("uuid", "joules"), [("GPU-1", 2.0), ("MIG-1", None)])  # a slice's neighbours draw, too
def test_a_watch_waits_for_the_reading_after_the_last_sample(
    uuid: str, joules: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = TelemetrySampler(uuid, 50.0)
    watch.readings = [GpuReading(at=9.0, watts=100.0, reasons=IDLE)]
    watch.measure_idle(0.01)
    assert watch.idle == 100.0
    watch.take_facts({})
    watch.readings = SECOND[:-1]  # up to 10.9 s
    monkeypatch.setattr(watch.stopped, "wait", lambda _seconds: watch.readings.append(SECOND[-1]))
    values = watch.take_facts(reply(ended=10.95))
    assert values.get("joules_per_step") == (joules and pytest.approx(joules))
    assert values.get("idle_watts") == (joules and 100.0)
