"""Sending to and receiving from a container that is slow, silent or gone."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError

from runner.backends import sending
from runner.backends.docker import channel
from runner.backends.docker.channel import DockerChannel
from runner.backends.docker.streams import MIN_TIMEOUT, Streams, Wire
from runner.backends.line_reader import Lines
from runner.backends.sending import UNREAD_SECONDS, UnreadError


class Pipe(Wire):
    """A wire that takes ``room`` bytes at a time, ``takes`` times, and returns ``gives`` piece by piece."""

    def __init__(self, room: int = 3, takes: int = 1000, gives: tuple[bytes, ...] = ()) -> None:
        """Start with nothing sent."""
        self.room, self.takes, self.gives = room, takes, list(gives)
        self.sent = b""

    def settimeout(self, timeout: float | None, /) -> None:
        """Do nothing."""

    def recv(self, size: int, /) -> bytes:
        """Return the next piece; time out after the last."""
        if not self.gives:
            raise TimeoutError
        return self.gives.pop(0)[:size]

    def send(self, data: memoryview, /) -> int:
        """Take the first ``room`` bytes."""
        if not self.takes:
            raise TimeoutError
        self.takes -= 1
        self.sent += bytes(data[: self.room])
        return min(self.room, len(data))

    def shutdown(self, how: int, /) -> None:
        """Unused."""

    def close(self) -> None:
        """Unused."""


def channel_over(pipe: Pipe, *states: str) -> Any:
    """Return a channel over a wire; the engine says that its container is ``up`` or ``gone``, or fails at ``?``."""
    opened: Any = object.__new__(DockerChannel)
    opened._wire, opened._streams, opened._cache = pipe, Streams(pipe), None
    opened._lines = Lines(opened._read)
    remaining = iter(states)

    def is_running() -> bool:
        state = next(remaining, "up")
        if state == "?":
            raise APIError("busy")
        return state == "up"

    opened._is_running = is_running
    return opened


def test_send_to_a_wire_that_takes_pieces_sends_everything() -> None:
    pipe = Pipe()
    channel_over(pipe).send(b"a line of some length\n", 60.0)
    assert pipe.sent == b"a line of some length\n"


def test_send_to_a_full_pipe_waits_until_the_container_is_gone() -> None:
    pipe = Pipe(takes=1)
    with pytest.raises(BrokenPipeError, match="the server has ended"):
        channel_over(pipe, "up", "?", "gone").send(b"a line\n", 60.0)
    assert pipe.sent == b"a l"


@dataclass
class Clock:
    """A clock on which a wire lets time pass."""

    now: float = 1000.0

    def monotonic(self) -> float:
        """Return the seconds."""
        return self.now


class Slow(Pipe):
    """A wire that takes a byte a second, or nothing until its time is over."""

    def __init__(self, clock: Clock, takes: int = 1000) -> None:
        """Let time pass on a clock."""
        super().__init__(room=1, takes=takes)
        self.clock, self.patience = clock, list[float]()

    def settimeout(self, timeout: float | None, /) -> None:
        """Note how long a call may take."""
        self.patience.append(timeout or 0.0)

    def send(self, data: memoryview, /) -> int:
        """Take a byte."""
        self.clock.now += 1.0 if self.takes else self.patience[-1]
        return super().send(data)


@pytest.mark.parametrize("takes", [1000, 2])
def test_a_request_is_sent_no_longer_than_it_may_take(monkeypatch: pytest.MonkeyPatch, takes: int) -> None:
    """``timeout`` limits the time to send all bytes, whether the server reads nothing or a few bytes at a time."""
    clock = Clock()
    monkeypatch.setattr(sending, "time", clock)
    pipe = Slow(clock, takes)
    with pytest.raises(UnreadError, match=r"^did not read what it was sent within 9\.5 s$"):
        channel_over(pipe).send(b"x" * 100, 9.5)
    assert 1009.5 <= clock.now < 1010.5 + MIN_TIMEOUT
    assert len(pipe.sent) == min(takes, 10)
    slow = Slow(clock)
    channel_over(slow).send(b"x" * 100, 200.0)
    assert slow.sent == b"x" * 100


def test_a_server_that_reads_nothing_is_given_up_before_a_long_request_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(sending, "time", clock)
    with pytest.raises(UnreadError, match=r"^read nothing for 60 s$"):
        channel_over(Slow(clock, takes=90)).send(b"x" * 100, 600.0)
    last_progress = 1090.0
    assert last_progress + UNREAD_SECONDS <= clock.now < last_progress + UNREAD_SECONDS + 1


def test_a_container_that_does_not_read_the_harness_is_no_fault_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    def start(self: Any, *_arguments: object) -> None:
        self._wire = Pipe(takes=0)

    monkeypatch.setattr(channel, "connect", lambda: None)
    monkeypatch.setattr(channel, "ARCHIVE_SECONDS", 0.0)
    monkeypatch.setattr(DockerChannel, "_start", start)
    monkeypatch.setattr(DockerChannel, "close", lambda self: closed.append(self.name))
    limits: Any = SimpleNamespace(run="r", device="cpu")
    ready: Any = SimpleNamespace(environment="a")
    with pytest.raises(UnreadError):
        DockerChannel(ready, limits, "owner", b"an archive")
    assert len(closed) == 1


def test_receive_ends_with_the_container_and_not_with_a_busy_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "QUIET_SECONDS", 0.01)
    out = b"\x01\0\0\0\0\0\0\x05word\n"
    opened = channel_over(Pipe(gives=(out[:6], out[6:])), "up", "?", "gone")
    assert opened.receive(5.0) == b"word"
    assert opened.receive(5.0) is None
    with pytest.raises(TimeoutError):
        channel_over(Pipe()).receive(0.05)
