"""What is sent to a container and read from it when nobody reads on, or nothing comes."""

from typing import Any

import pytest
from docker.errors import APIError

from runner.backends.docker import channel
from runner.backends.docker.channel import DockerChannel, Streams, Wire
from runner.backends.line_reader import Lines


class Pipe(Wire):
    """A wire that takes ``room`` bytes at a time, as often as ``takes`` says, and gives what it is told to."""

    def __init__(self, room: int = 3, takes: int = 1000, gives: tuple[bytes, ...] = ()) -> None:
        """Begin with nothing sent."""
        self.room, self.takes, self.gives = room, takes, list(gives)
        self.sent = b""

    def settimeout(self, timeout: float | None, /) -> None:
        """Take it."""

    def recv(self, size: int, /) -> bytes:
        """Return what is told next; after that nothing comes in time."""
        if not self.gives:
            raise TimeoutError
        return self.gives.pop(0)[:size]

    def send(self, data: memoryview, /) -> int:
        """Take the beginning of it."""
        if not self.takes:
            raise TimeoutError
        self.takes -= 1
        self.sent += bytes(data[: self.room])
        return min(self.room, len(data))

    def shutdown(self, how: int, /) -> None:
        """Not asked for."""

    def close(self) -> None:
        """Not asked for."""


def channel_over(pipe: Pipe, *states: str) -> Any:
    """Return a channel over a wire; each time its container is looked for, it is ``up`` or ``gone``, or ``?``."""
    found: Any = object.__new__(DockerChannel)
    found._wire, found._streams = pipe, Streams(pipe)
    found._lines = Lines(found._read)
    states_left = iter(states)

    def ask() -> bool:
        state = next(states_left, "up")
        if state == "?":
            raise APIError("busy")
        return state == "up"

    found._alive = ask
    return found


def test_what_a_wire_takes_in_parts_is_sent_whole() -> None:
    pipe = Pipe()
    channel_over(pipe).send(b"a line of some length\n")
    assert pipe.sent == b"a line of some length\n"


def test_a_full_pipe_is_waited_for_as_long_as_the_container_lives() -> None:
    pipe = Pipe(takes=1)
    with pytest.raises(BrokenPipeError, match="nobody reads on"):
        channel_over(pipe, "up", "?", "gone").send(b"a line\n")
    assert pipe.sent == b"a l"


def test_silence_ends_with_the_container_and_not_with_an_engine_that_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "QUIET_SECONDS", 0.01)
    out = b"\x01\0\0\0\0\0\0\x05word\n"
    found = channel_over(Pipe(gives=(out[:6], out[6:])), "up", "?", "gone")
    assert found.receive(5.0) == b"word"
    assert found.receive(5.0) is None
    with pytest.raises(TimeoutError):
        channel_over(Pipe()).receive(0.05)
