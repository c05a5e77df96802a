"""The nights on top of the site."""

from datetime import UTC, datetime, timedelta

from runner.history.entries import RunRow
from runner.report.last_nights import MAX_NIGHTS, last_nights

FIRST = datetime(2026, 9, 1, 2, 30, tzinfo=UTC)


def night(number: int, *, host: str = "bench1", kind: str = "night", changes: int = 0) -> RunRow:
    at = (FIRST + timedelta(days=number)).isoformat()
    fixed = {"device": "GPU-1", "device_name": "H200", "backend": "docker", "driver": "", "harness": "", "source": ""}
    return RunRow(run=f"run-{number}-{host}", at=at, kind=kind, host=host, cells=2, changes=changes, **fixed)  # type: ignore[arg-type]


def test_each_device_has_its_newest_nights_in_order() -> None:
    rows = [night(number) for number in reversed(range(70))] + [night(3, host="bench2", changes=1)]
    first, second = last_nights([*rows, night(80, kind="run")], {"run-69-bench1"})
    assert (first.device, len(first.nights)) == ("docker H200 of bench1", MAX_NIGHTS)
    assert first.nights[0].text == "2026-09-11 02:30: 2 tests, no change"
    assert first.last == ("2026-11-09 02:30: 2 tests, no change", False, "runs/run-69-bench1/index.html")
    assert first.nights[-2].page == ""
    assert second == ("docker H200 of bench2", (("2026-09-04 02:30: 2 tests, 1 change", True, ""),))


def test_without_a_night_there_is_no_strip() -> None:
    assert last_nights([night(1, kind="run")], ()) == []
