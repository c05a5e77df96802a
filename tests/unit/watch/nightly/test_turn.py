"""No night beside another one; and a night that was missed starts once."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from runner.core.errors import NightRunningError, UsageError
from runner.watch.nightly.turn import missed, only_night

AT = (2, 30)


def night(reports: Path, run: str) -> None:
    path = reports / "nights" / f"{run}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def test_a_second_night_names_the_process_and_the_run_and_has_its_exit_code(tmp_path: Path) -> None:
    night(tmp_path, "20261120-023000-50a1")
    with only_night(tmp_path), pytest.raises(NightRunningError) as refused, only_night(tmp_path):
        pass
    assert refused.value.exit_code == 75
    assert "is in use by process" in str(refused.value)
    assert "20261120-023000-50a1" in str(refused.value)
    with only_night(tmp_path):  # free again
        pass


def test_other_folders_have_nights_of_their_own(tmp_path: Path) -> None:
    with only_night(tmp_path / "one"), only_night(tmp_path / "two"):
        assert (tmp_path / "one" / "nights").is_dir()


def test_a_folder_that_cannot_be_made_is_a_mistake_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError), only_night(tmp_path / "file"):
        pass


def test_a_night_is_missed_once(tmp_path: Path) -> None:
    night(tmp_path, "20261119-023001-50a1")
    assert missed(tmp_path, AT, at(19, 12)) == (
        False,
        "night 20261119-023001-50a1 has started since 02:30: none was missed",
    )
    assert not missed(tmp_path, AT, at(20, 2, 29))[0]
    assert missed(tmp_path, AT, at(20, 2, 30)) == (True, "")
    assert missed(tmp_path, AT, at(22, 9)) == (True, "")  # off for days: one night
    night(tmp_path, "20261122-090001-50a1")
    assert not missed(tmp_path, AT, at(22, 10))[0]
    assert missed(tmp_path, AT, at(23, 3))[0]


def test_a_night_of_the_future_hides_no_missed_night(tmp_path: Path) -> None:
    night(tmp_path, "20261119-023001-50a1")
    night(tmp_path, "20361119-023001-50a1")
    assert missed(tmp_path, AT, at(20, 9)) == (True, "")
    night(tmp_path, "20261120-023001-50a1")
    assert not missed(tmp_path, AT, at(20, 10))[0]


def test_where_all_nights_are_of_the_future_one_was_missed(tmp_path: Path) -> None:
    night(tmp_path, "20361119-023001-50a1")
    assert missed(tmp_path, AT, at(20, 9)) == (True, "")


def test_a_new_schedule_has_missed_nothing(tmp_path: Path) -> None:
    assert "no night yet" in missed(tmp_path, AT, at(20, 12))[1]


def test_the_time_of_day_is_local_and_runs_are_named_in_utc(tmp_path: Path) -> None:
    night(tmp_path, "20261119-003001-50a1")  # 02:30 in this zone
    zone = timezone(timedelta(hours=2))
    assert not missed(tmp_path, AT, datetime(2026, 11, 19, 12, tzinfo=zone))[0]
    assert missed(tmp_path, (2, 31), datetime(2026, 11, 19, 12, tzinfo=zone))[0]
