"""The nights on top of the site."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from runner.history.entries import ChangeEntry, RunRow
from runner.report.last_nights import MAX_NIGHTS, last_nights, newest_nights

FIRST = datetime(2026, 9, 1, 2, 30, tzinfo=UTC)
RUN = "run-3-bench1"
CANDIDATE = ChangeEntry(cell="torch-2.x/w/c/train/fp32", before="run-2-bench1", state="measured-again", verdict="same")
REGRESSION = replace(CANDIDATE, verdict="slower", confirmed_in=RUN)


def night(number: int, *, host: str = "bench1", kind: str = "night", changes: int = 0) -> RunRow:
    at = (FIRST + timedelta(days=number)).isoformat()
    fixed = {"device": "GPU-1", "device_name": "H200", "backend": "docker", "driver": "", "harness": "", "source": ""}
    return RunRow(run=f"run-{number}-{host}", at=at, kind=kind, host=host, cells=2, changes=changes, **fixed)  # type: ignore[arg-type]


def unread(run: str) -> Sequence[ChangeEntry]:
    """Stand for the changes of nights that have none, which are not read."""
    pytest.fail(f"the changes of {run} were read")


def test_each_device_has_its_newest_nights_in_order() -> None:
    rows = [night(number) for number in reversed(range(70))] + [night(3, host="bench2")]
    first, second = last_nights(
        newest_nights([*rows, night(80, kind="run")]), {"run-69-bench1": "runs/run-69-bench1/index.html"}, unread
    )
    assert (first.device, len(first.nights)) == ("docker H200 of bench1", MAX_NIGHTS)
    assert first.nights[0].text == "2026-09-11 02:30: 2 tests, no regression confirmed"
    assert first.last == ("2026-11-09 02:30: 2 tests, no regression confirmed", False, "runs/run-69-bench1/index.html")
    assert first.nights[-2].page == ""
    assert second == ("docker H200 of bench2", (("2026-09-04 02:30: 2 tests, no regression confirmed", False, ""),))


def test_without_a_night_there_is_no_strip() -> None:
    assert last_nights(newest_nights([night(1, kind="run")]), {}, unread) == []


@pytest.mark.parametrize(
    ("changes", "text", "has_regressions"),
    [
        ([CANDIDATE] * 67, "no regression confirmed", False),
        ([replace(CANDIDATE, verdict="inconclusive")], "no regression confirmed", False),
        ([replace(CANDIDATE, verdict="", state="no-time")], "no regression confirmed", False),
        ([replace(CANDIDATE, verdict="slower")], "no regression confirmed", False),
        ([replace(REGRESSION, confirmed_in="run-2-bench1")], "no regression confirmed; 1 earlier one stands", False),
        ([REGRESSION, CANDIDATE, replace(REGRESSION, against="anchor")], "1 regression confirmed", True),
        ([REGRESSION, replace(REGRESSION, metric="memory", verdict="more")], "2 regressions confirmed", True),
        ([replace(CANDIDATE, verdict="faster")], "no regression confirmed; 1 improvement", False),
        (
            [REGRESSION, replace(CANDIDATE, metric="memory", verdict="less")],
            "1 regression confirmed; 1 improvement",
            True,
        ),
    ],
)
def test_only_what_a_night_decided_counts_as_changed(
    changes: list[ChangeEntry], text: str, *, has_regressions: bool
) -> None:
    stored = {RUN: changes}
    (device,) = last_nights(newest_nights([night(3, changes=len(changes))]), {}, stored.__getitem__)
    assert device.last == (f"2026-09-04 02:30: 2 tests, {text}", has_regressions, "")


def test_a_run_of_another_machine_with_changes_is_a_night() -> None:
    imported = night(3, kind="import", changes=1)
    assert [row.is_night for row in (imported, night(3), night(3, kind="import"), night(3, kind="run"))] == [
        True,
        True,
        False,
        False,
    ]
    (device,) = last_nights(newest_nights([imported]), {}, lambda _: [REGRESSION])
    assert device.last.has_regressions
