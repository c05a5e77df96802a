"""When an alert opens and ends, and which cells it is about."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.history.entries import Acceptance
from runner.nights.anchors_file import accept_anchors
from runner.watch.alerts import overview
from runner.watch.nightly.night_record import night_change
from tests.support.fake_runs import make, rounds
from tests.support.nights import BEFORE, Receivers, change, ended, many, night, row, run_of
from tests.unit.watch.alerts.history import CELLS, CLOSED, KEY, OPENED, slower, stored

DEVICE = "docker NVIDIA H200"


def accept(reports: Path, run: str, reason: str) -> None:
    """Accept all cells of a run, as `runner history accept` does."""
    cells = tuple(of.id for of in CELLS)
    at = "2026-11-24T12:00:00Z"
    accept_anchors(reports, Acceptance(device=DEVICE, run=run, cells=cells, at=at, reason=reason, person="ann"))


def test_200_slower_cells_are_one_message_and_nights_do_not_repeat_it(tmp_path: Path) -> None:
    receivers = Receivers()
    ended(tmp_path, slower(1), receivers)
    assert receivers.titles() == [f"1 slack: {OPENED}", f"2 mailto: {OPENED}"]
    (entry,) = stored(tmp_path, 1)
    assert (entry["key"], entry["action"], entry["delivered"], entry["reason"]) == (KEY, "opened", True, "")
    assert [(key.split()[0], failure) for key, failure in entry["targets"].items()] == [("slack", ""), ("mailto", "")]
    assert len(entry["cells"]) == 200
    for day in (2, 3):
        assert ended(tmp_path, slower(day), receivers).alerts == ()
    assert receivers.titles() == []


def test_an_alert_ends_with_a_message_when_its_cells_are_the_same_again(tmp_path: Path) -> None:
    receivers = Receivers()
    ended(tmp_path, slower(1), receivers)
    receivers.titles()
    ended(tmp_path, slower(2, CELLS[:50]), receivers)  # 150 of them recovered
    (entry,) = stored(tmp_path, 2)
    assert (entry["action"], len(entry["cells"]), entry["delivered"]) == ("left", 150, True)
    assert receivers.titles() == []
    again = [change(of, run_of(3), 1.003, stands=False) for of in CELLS[:50]]
    ended(tmp_path, night(3, again, CELLS), receivers)
    (_, message), _ = receivers.messages
    assert message.title == CLOSED.replace("200 tests", "50 tests")
    assert "recovered: 0.3 % slower (1.3 % slower to 0.7 % faster), measured alternately" in message.body
    assert overview.overview(tmp_path).alerts == ()
    ended(tmp_path, night(4, [change(of, run_of(4)) for of in CELLS], CELLS), receivers)
    assert OPENED in receivers.titles()[-1], "what recovered and is slower again is news"


@pytest.mark.parametrize(
    ("context", "is_open"),
    [
        ({}, False),
        ({"compared": frozenset()}, True),  # nothing to compare with, after an update of the driver
        ({"compared": frozenset(), "digests": {"torch-2.x": "sha256:other"}}, True),
    ],
)
def test_a_cell_recovers_only_where_a_night_could_tell(
    tmp_path: Path, context: dict[str, Any], *, is_open: bool
) -> None:
    receivers = Receivers()
    ended(tmp_path, slower(1), receivers)
    ended(tmp_path, night(2, [], CELLS), receivers, **context)
    assert bool(overview.overview(tmp_path).alerts) == is_open


@pytest.mark.parametrize(
    ("ratio", "width", "is_open"),
    [(1.01, 0.04, True), (0.97, 0.06, True), (0.98, 0.03, False)],
)
def test_an_open_verdict_ends_an_alert_only_below_the_margin(
    tmp_path: Path, ratio: float, width: float, *, is_open: bool
) -> None:
    receivers = Receivers()
    of = CELLS[0]
    ended(tmp_path, slower(1, [of]), receivers)
    again = night_change(
        of,
        row(of, ratio),
        again=row(of, ratio, "inconclusive", width),
        before=BEFORE,
        state="measured-again",
        digest="sha256:new",
    )
    ended(tmp_path, night(2, [again], CELLS), receivers)
    assert bool(overview.overview(tmp_path).alerts) == is_open
    assert any("no longer slower" in title for title in receivers.titles()) != is_open


def test_a_creep_is_over_when_the_environment_is_the_anchor_s_again(tmp_path: Path) -> None:
    receivers = Receivers()
    anchor = make(tmp_path, rounds(CELLS[0], [1.0]))
    anchor.note("begun", digests={"torch-2.x": "sha256:anchor"})
    ended(tmp_path, slower(1, CELLS[:1], against="anchor", before=anchor.id), receivers)
    ended(tmp_path, night(2, [], CELLS), receivers)  # it was not the turn of its anchor
    assert len(overview.overview(tmp_path).alerts) == 1
    tonight = ended(tmp_path, night(3, [], CELLS), receivers, digests={"torch-2.x": "sha256:anchor"})
    assert [entry.because for entry in tonight.alerts] == [f"the environment is again as in run {anchor.id}"]


def test_to_be_the_same_as_the_last_good_run_does_not_end_a_creep(tmp_path: Path) -> None:
    receivers = Receivers()
    of = CELLS[0]
    ended(tmp_path, slower(1, [of], against="anchor"), receivers)
    since_yesterday = change(of, run_of(2), 1.0, before=run_of(1), stands=False)
    assert ended(tmp_path, night(2, [since_yesterday], CELLS), receivers).alerts == ()
    since_the_anchor = change(of, run_of(3), 1.0, against="anchor", stands=False)
    ended(tmp_path, night(3, [since_the_anchor], CELLS), receivers)
    assert overview.overview(tmp_path).alerts == ()


def test_an_accepted_regression_is_closed_with_its_reason(tmp_path: Path) -> None:
    receivers = Receivers()
    accept(tmp_path, "20261101-023000-aaaa", "an older level")
    ended(tmp_path, slower(1), receivers)
    ended(tmp_path, night(2, [], CELLS), receivers, compared=frozenset())
    assert overview.overview(tmp_path).alerts, "a level that was accepted before is no answer to this regression"
    accept(tmp_path, run_of(1), "a safer kernel")
    tonight = ended(tmp_path, night(3, [], CELLS), receivers)
    assert [entry.because for entry in tonight.alerts] == [f"run {run_of(1)} was accepted: a safer kernel (ann)"]
    assert receivers.titles()[-1] == f"2 mailto: {CLOSED}"


def test_a_cell_that_no_night_measures_leaves_after_thirty_days(tmp_path: Path) -> None:
    receivers = Receivers()
    ended(tmp_path, slower(1), receivers)
    others = many(1, "torch-1.12")
    ended(tmp_path, night(30, [], others), receivers)
    assert overview.overview(tmp_path).alerts
    late = replace(night(31, [], others), at="2027-01-02T02:30:00+00:00")
    assert [entry.because for entry in ended(tmp_path, late, receivers).alerts] == [
        "no night has measured it for 30 days"
    ]


def test_what_the_first_night_had_no_time_for_joins_without_a_message(tmp_path: Path) -> None:
    receivers = Receivers()
    ended(tmp_path, slower(1, CELLS[:10]), receivers)
    receivers.titles()
    more = [*(change(of, run_of(1)) for of in CELLS[:10]), *(change(of, run_of(2)) for of in CELLS[10:40])]
    ended(tmp_path, night(2, more, CELLS), receivers)
    assert receivers.titles() == []
    assert [(entry["action"], len(entry["cells"])) for entry in stored(tmp_path, 2)] == [("joined", 30)]
    (alert,) = overview.overview(tmp_path).alerts
    assert len(alert.alert.cells) == 40
    assert alert.known is not None
    assert alert.known.cells == 40


def test_a_reported_cell_that_gets_worse_is_reported_again(tmp_path: Path) -> None:
    receivers = Receivers()
    ended(tmp_path, slower(1, CELLS[:2]), receivers)
    receivers.titles()
    ended(tmp_path, slower(2, CELLS[:2], ratio=1.11), receivers)  # within its interval
    assert receivers.titles() == []
    worse = [change(CELLS[0], run_of(1), 1.3), change(CELLS[1], run_of(1), 1.1)]
    ended(tmp_path, night(3, worse, CELLS), receivers)
    assert [entry["action"] for entry in stored(tmp_path, 3)] == ["left", "opened"]
    assert "1.30x slower" in receivers.titles()[0]
    assert {alert.alert.key: len(alert.alert.cells) for alert in overview.overview(tmp_path).alerts} == {
        KEY: 1,
        f"torch-2.x-{run_of(3)}": 1,
    }


def test_a_creep_that_becomes_a_step_is_reported_again(tmp_path: Path) -> None:
    receivers = Receivers()
    ended(tmp_path, slower(1, CELLS[:1], against="anchor"), receivers)
    ended(tmp_path, slower(2, CELLS[:1], before=run_of(1)), receivers)
    assert [entry["action"] for entry in stored(tmp_path, 2)] == ["closed", "opened"]
    assert len(receivers.titles()) == 4, "nobody gets the end of an alert that goes on in another"


def test_nights_of_another_device_change_no_alert(tmp_path: Path) -> None:
    receivers = Receivers()
    ended(tmp_path, slower(1), receivers)
    other = replace(night(2, [], CELLS), device_name="AMD EPYC")
    assert ended(tmp_path, other, receivers).alerts == ()


def test_a_later_change_of_another_metric_is_a_message_of_its_own(tmp_path: Path) -> None:
    """A cell that takes more memory keeps its last good run, and may become slower nights later."""
    receivers = Receivers()
    larger = replace(change(CELLS[0], run_of(1)), metric="memory")
    ended(tmp_path, night(1, [larger], CELLS), receivers)
    assert "more memory" in receivers.titles()[0]
    ended(tmp_path, night(2, [larger], CELLS), receivers)
    assert receivers.titles() == []
    ended(tmp_path, night(3, [larger, change(CELLS[0], run_of(3))], CELLS), receivers)
    assert [entry["action"] for entry in stored(tmp_path, 3)] == ["opened"]
    assert "slower" in receivers.titles()[0]
