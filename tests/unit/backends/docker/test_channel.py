"""Sending to and receiving from a container that is slow, silent or gone."""

from typing import Any

import pytest
from docker.errors import APIError

from runner.backends.docker import channel
from runner.backends.docker.channel import DockerChannel
from runner.backends.docker.streams import Streams, Wire
from runner.backends.line_reader import Lines


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
    channel_over(pipe).send(b"a line of some length\n")
    assert pipe.sent == b"a line of some length\n"


def test_send_to_a_full_pipe_waits_until_the_container_is_gone() -> None:
    pipe = Pipe(takes=1)
    with pytest.raises(BrokenPipeError, match="no longer reads"):
        channel_over(pipe, "up", "?", "gone").send(b"a line\n")
    assert pipe.sent == b"a l"


def test_send_to_a_server_that_reads_byte_by_byte_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "SEND_SECONDS", 0.0)
    pipe = Pipe(room=1)
    with pytest.raises(BrokenPipeError, match="no longer reads"):
        channel_over(pipe).send(b"a line\n")
    assert pipe.sent == b"a"
    channel_over(Pipe(room=7)).send(b"a line\n")


def test_receive_ends_with_the_container_and_not_with_a_busy_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "QUIET_SECONDS", 0.01)
    out = b"\x01\0\0\0\0\0\0\x05word\n"
    opened = channel_over(Pipe(gives=(out[:6], out[6:])), "up", "?", "gone")
    assert opened.receive(5.0) == b"word"
    assert opened.receive(5.0) is None
    with pytest.raises(TimeoutError):
        channel_over(Pipe()).receive(0.05)
