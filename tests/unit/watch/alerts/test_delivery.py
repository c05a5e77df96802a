"""What happens to messages when receivers refuse them, and when nights are killed."""

import hashlib
import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.nights.night_files import write_night
from runner.watch.alerts import overview, sending
from runner.watch.alerts.message import TEST_MESSAGE
from tests.support.nights import MAIL, SLACK, Receivers, change, ended, many, night, run_of
from tests.unit.watch.alerts.history import CELLS, CLOSED, OPENED, slower, stored


def test_the_next_night_sends_only_what_was_not_delivered(tmp_path: Path) -> None:
    receivers = Receivers({"2 mailto": "it answered with HTTP status 500"})
    tonight = ended(tmp_path, slower(1), receivers)
    assert receivers.titles() == [f"1 slack: {OPENED}"]
    assert tonight.exit_code == 1
    (sentence,) = tonight.notes
    assert sentence.endswith("2 mailto: it answered with HTTP status 500; the next night sends it again")
    (alert,) = overview.overview(tmp_path).alerts
    assert "HTTP status 500" in alert.failure
    ended(tmp_path, slower(2), receivers)
    assert receivers.titles() == []
    receivers.refusing.clear()
    ended(tmp_path, slower(3), receivers)
    assert receivers.titles() == [f"2 mailto: {OPENED}"]
    assert stored(tmp_path, 3)[0]["delivered"]
    ended(tmp_path, slower(4), receivers)
    assert receivers.titles() == []


def test_a_receiver_that_is_taken_off_the_list_costs_the_others_nothing(tmp_path: Path) -> None:
    receivers = Receivers({"2 mailto": "it answered with HTTP status 500"})
    ended(tmp_path, slower(1), receivers)
    assert receivers.titles() == [f"1 slack: {OPENED}"]
    receivers.refusing.clear()
    ended(tmp_path, slower(2), receivers, targets=(replace(MAIL, name="1 mailto"),))
    assert receivers.titles() == [f"1 mailto: {OPENED}"]


def test_a_message_of_a_night_before_the_salt_is_not_sent_twice(tmp_path: Path) -> None:
    receivers = Receivers({"2 mailto": "no"})
    tonight = ended(tmp_path, slower(1), receivers)
    receivers.titles()
    (entry,) = tonight.alerts
    earlier = {f"slack {hashlib.sha256(SLACK.address.encode()).hexdigest()[:8]}": "", "mailto 00000000": "no"}
    write_night(replace(tonight, alerts=(replace(entry, targets=earlier),)), tmp_path)
    receivers.refusing.clear()
    ended(tmp_path, slower(2), receivers)
    assert receivers.titles() == [f"2 mailto: {OPENED}"]
    assert set(stored(tmp_path, 2)[0]["targets"]) == {SLACK.key, MAIL.key}


def test_nobody_hears_of_the_end_of_what_nobody_heard_of(tmp_path: Path) -> None:
    receivers = Receivers({"1 slack": "no", "2 mailto": "no"})
    ended(tmp_path, slower(1), receivers)
    receivers.refusing.clear()
    ended(tmp_path, night(2, [], CELLS), receivers)
    assert receivers.titles() == []
    assert overview.overview(tmp_path).alerts == ()


def test_the_end_of_an_alert_is_sent_again_too(tmp_path: Path) -> None:
    receivers = Receivers()
    ended(tmp_path, slower(1), receivers)
    receivers.titles()
    receivers.refusing["1 slack"] = "no"
    ended(tmp_path, night(2, [], CELLS), receivers)
    assert receivers.titles() == [f"2 mailto: {CLOSED}"]
    receivers.refusing.clear()
    ended(tmp_path, night(3, [], CELLS), receivers)
    assert receivers.titles() == [f"1 slack: {CLOSED}"]


def test_without_receivers_alerts_are_kept_and_sent_to_the_first_receiver(tmp_path: Path) -> None:
    receivers = Receivers()
    tonight = ended(tmp_path, slower(1), receivers, targets=())
    assert (tonight.notes, receivers.messages) == ((), [])
    assert stored(tmp_path, 1)[0]["reason"] == "nobody is to be notified"
    assert ended(tmp_path, slower(2), receivers, targets=()).alerts == (), "nothing is stored twice"
    ended(tmp_path, slower(3), receivers, targets=(SLACK,))
    assert receivers.titles() == [f"1 slack: {OPENED}"]


@pytest.mark.parametrize("kill_before", [True, False])
def test_a_night_killed_while_it_sends_loses_no_message(tmp_path: Path, *, kill_before: bool) -> None:
    class Killed(BaseException):
        """Stands for SIGKILL: nothing after it runs."""

    class Killing(Receivers):
        def __call__(self, *arguments: Any) -> dict[str, str]:
            if not kill_before:
                super().__call__(*arguments)
            raise Killed

    killing, receivers = Killing(), Receivers()
    with pytest.raises(Killed):
        ended(tmp_path, slower(1), killing)
    assert stored(tmp_path, 1)[0]["reason"] == "it was about to be sent"
    ended(tmp_path, slower(2), receivers)
    assert receivers.titles() == [f"1 slack: {OPENED}", f"2 mailto: {OPENED}"], "twice at the most, and never lost"
    ended(tmp_path, slower(3), receivers)
    assert receivers.titles() == []


def test_a_night_killed_before_its_alerts_is_reported_by_the_next(tmp_path: Path) -> None:
    receivers = Receivers()
    write_night(slower(1), tmp_path)
    ended(tmp_path, slower(2), receivers)
    assert receivers.titles()[0] == f"1 slack: {OPENED}"


def test_a_receiver_that_takes_all_the_time_does_not_hold_up_the_night(tmp_path: Path) -> None:
    now = [0.0]

    class Slow(Receivers):
        def __call__(self, *arguments: Any) -> dict[str, str]:
            now[0] += 61
            return super().__call__(*arguments)

    changes = [change(of, run_of(1)) for of in (*many(1), *many(1, "torch-1.12"))]
    receivers = Slow()
    tonight = ended(tmp_path, night(1, changes, CELLS), receivers, targets=(MAIL,), clock=lambda: now[0])
    assert [entry.delivered for entry in tonight.alerts] == [True, False]
    assert "took too long" in tonight.alerts[1].reason


def test_without_apprise_a_receiver_has_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    assert sending.send(TEST_MESSAGE, (SLACK, MAIL)) == {
        "1 slack": "apprise is not installed: `pip install 'matrix-runner[alerts]'`",
        "2 mailto": "apprise is not installed: `pip install 'matrix-runner[alerts]'`",
    }
