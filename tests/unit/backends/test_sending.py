"""How long a server may take to read what it is sent, on a clock of the test."""

from types import SimpleNamespace

import pytest

from runner.backends import sending
from runner.backends.sending import SendTime, UnreadError


def test_progress_gives_a_server_another_minute_and_never_more_than_its_request_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(sending, "time", SimpleNamespace(monotonic=lambda: now[0]))
    time_left = SendTime(130.0)
    assert time_left.left() == 60.0
    for seconds, expected in ((59.0, 60.0), (59.0, 12.0)):
        now[0] += seconds
        assert time_left.left() == 1.0
        time_left.note_progress()
        assert time_left.left() == expected
    now[0] += 12.0
    with pytest.raises(UnreadError, match=r"^did not read what it was sent within 130 s$"):
        time_left.left()


def test_a_server_that_reads_nothing_is_given_up_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(sending, "time", SimpleNamespace(monotonic=lambda: now[0]))
    time_left = SendTime(600.0)
    now[0] += 60.0
    with pytest.raises(UnreadError, match=r"^read nothing for 60 s$"):
        time_left.left()
