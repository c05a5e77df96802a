"""A clock that is ahead removes no run that a right one would keep."""

from datetime import UTC, datetime
from pathlib import Path

from runner.history.database import History
from runner.history.retention import Policy
from runner.watch.series.prune import counted_from, prune
from tests.support.histories import night

RIGHT, FUTURE = datetime(2026, 4, 20, tzinfo=UTC), datetime(2036, 4, 20, tzinfo=UTC)


def test_a_clock_that_is_years_ahead_removes_no_more_than_one_of_a_month_later(tmp_path: Path) -> None:
    with History.open(f"sqlite:///{tmp_path}/history.db") as history:
        assert counted_from(history, FUTURE) == FUTURE, "an empty history has no newest run"
        for number in range(28 * 4):
            history.add(night(number))
        newest = datetime(2026, 4, 28, 2, 30, tzinfo=UTC)
        assert counted_from(history, RIGHT) == RIGHT
        assert (counted_from(history, FUTURE) - newest).days == 31
        policy = Policy(now=counted_from(history, FUTURE), days=90, dry_run=True)
        removed = prune(tmp_path, history, policy).removed
    assert removed
    assert max(run.at for run in removed) < "2026-03-01"
