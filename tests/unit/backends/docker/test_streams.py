"""Frames of the engine that flood, lie about their length, or carry what a terminal would obey."""

import itertools

import pytest

from runner.backends.docker.streams import LAST_BYTES, LINE_LENGTH, MAX_FRAME, Streams, Wire


class Flood(Wire):
    """A wire that repeats its bytes without end; counts the reads."""

    def __init__(self, data: bytes) -> None:
        """Repeat ``data``."""
        self.data, self.reads = data, 0

    def settimeout(self, timeout: float | None, /) -> None:
        """Do nothing."""

    def recv(self, size: int, /) -> bytes:
        """Return as many repetitions as fit."""
        self.reads += 1
        return self.data * (size // len(self.data))

    def send(self, data: memoryview, /) -> int:
        """Unused."""
        raise NotImplementedError

    def shutdown(self, how: int, /) -> None:
        """Unused."""

    def close(self) -> None:
        """Unused."""


def frame(stream: int, data: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


def ticking(seconds: float) -> Streams:
    """Return streams over an endless stderr, by a clock that advances at each look."""
    times = itertools.count(0.0, seconds)
    return Streams(Flood(frame(2, b"noise\n")), lambda: next(times))


def test_endless_stderr_does_not_outlast_the_timeout() -> None:
    streams = ticking(0.5)
    with pytest.raises(TimeoutError):
        streams.read(3.0)
    assert len(streams.words()) <= LAST_BYTES
    assert streams.words().endswith("noise\n")


def test_read_reads_at_least_once() -> None:
    streams = Streams(Flood(frame(1, b"word\n")))
    assert streams.read(0.0).startswith(b"word\n")


@pytest.mark.parametrize(
    "header",
    [
        b"\x03\0\0\0\0\0\0\x01",
        b"\x01\0\x01\0\0\0\0\x01",
        b"HTTP/1.1",
        b"\x01\0\0\0" + (MAX_FRAME + 1).to_bytes(4, "big"),
        b"\x02\0\0\0\xff\xff\xff\xff",
    ],
)
def test_invalid_frame_ends_the_stream_after_what_came_before_it(header: bytes) -> None:
    streams = Streams(Flood(frame(1, b"before") + header + b"x" * (1 << 19)))  # a read returns it once
    assert streams.read(5.0) == b"before"
    assert streams.read(5.0) == b""
    assert streams.invalid == header.hex(" ")


def test_words_are_printable_and_their_lines_are_cut() -> None:
    data = b"\x1b]0;title\x07\0\0\xff red\n" + b"x" * 5000 + b"\nlast\n"
    streams = Streams(Flood(frame(2, data) + frame(1, b"out")))
    streams.read(5.0)
    words = streams.words()
    assert words.isprintable() or "\n" in words
    assert not {"\x1b", "\x07", "\0"} & set(words)
    assert max(map(len, words.split("\n"))) == LINE_LENGTH
    assert words.endswith("…\nlast\n")
