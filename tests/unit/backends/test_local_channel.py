"""Sending to a server of this machine that does not read, with pipes in place of a process."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from runner.backends import sending
from runner.backends.local_channel import ProcessChannel
from runner.backends.sending import UnreadError


@pytest.fixture
def unread() -> Iterator[Any]:
    """Return a channel to a server that reads nothing and writes nothing."""
    channel: Any = object.__new__(ProcessChannel)
    with ExitStack() as files:
        for name in ("stdin", "stderr"):
            reads, writes = (
                files.enter_context(os.fdopen(fd, mode, 0)) for fd, mode in zip(os.pipe(), ("rb", "wb"), strict=True)
            )
            setattr(channel, name, writes if name == "stdin" else reads)
        os.set_blocking(channel.stdin.fileno(), False)
        channel.stderr_ended, channel.last_words = False, bytearray()
        yield channel


@pytest.mark.parametrize("seconds", [0.0, 0.2])
def test_a_request_that_nobody_reads_ends_with_its_deadline(unread: Any, seconds: float) -> None:
    begin = time.monotonic()
    with pytest.raises(UnreadError, match=r"^did not read what it was sent within "):
        unread.send(b"x" * (4 << 20), seconds)
    assert seconds <= time.monotonic() - begin < seconds + 30


def test_a_server_that_reads_nothing_is_given_up_before_a_long_request_ends(
    unread: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "UNREAD_SECONDS", 0.2)
    begin = time.monotonic()
    with pytest.raises(UnreadError, match=r"^read nothing for 0\.2 s$"):
        unread.send(b"x" * (4 << 20), 600.0)
    assert 0.2 <= time.monotonic() - begin < 30


def test_a_short_request_is_sent_at_once(unread: Any) -> None:
    unread.send(b"a line\n", 1.0)
