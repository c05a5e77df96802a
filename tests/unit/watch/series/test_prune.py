"""A clock that is ahead removes no run that a right one would keep."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from runner.core.errors import UsageError
from runner.history.database import History
from runner.watch.series.prune import checked_days
from tests.support.histories import night


def test_a_clock_that_is_far_ahead_of_the_newest_run_needs_a_choice(tmp_path: Path) -> None:
    with History.open(f"sqlite:///{tmp_path}/history.db") as history:
        later = datetime(2026, 2, 20, tzinfo=UTC)
        assert checked_days(history, later, None) == 90, "an empty history has no newest run"
        history.add(night(1))
        assert checked_days(history, datetime(2026, 1, 20, tzinfo=UTC), None) == 90
        with pytest.raises(UsageError, match="the newest run .* is of 2026-01-02, and the clock shows 2026-02-20"):
            checked_days(history, later, None)
        assert checked_days(history, later, 90) == 90
        assert checked_days(history, later, 0) == 0
