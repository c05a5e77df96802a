"""Splitting a stream into lines, however the bytes arrive."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.backends.line_reader import Lines


class _Stream:
    """Returns its chunks one by one, times out for None, and then ends."""

    def __init__(self, *chunks: bytes | None) -> None:
        self.chunks = list(chunks)
        self.timeouts: list[float] = []

    def read(self, timeout: float) -> bytes:
        self.timeouts.append(timeout)
        if not self.chunks:
            return b""
        chunk = self.chunks.pop(0)
        if chunk is None:
            raise TimeoutError
        return chunk


def lines(*chunks: bytes | None) -> Lines:
    return Lines(_Stream(*chunks).read)


def test_several_lines_in_one_chunk() -> None:
    reader = lines(b"one\ntwo\n\nthree\n")
    assert [reader.next(1.0) for _ in range(5)] == [b"one", b"two", b"", b"three", None]


def test_one_line_in_several_chunks() -> None:
    reader = lines(b"o", b"n", b"e\nt", b"wo\n")
    assert [reader.next(1.0) for _ in range(3)] == [b"one", b"two", None]


def test_next_after_the_end_is_none_each_time() -> None:
    reader = lines(b"one\n")
    assert [reader.next(1.0) for _ in range(4)] == [b"one", None, None, None]


def test_a_line_without_its_newline_is_dropped_at_the_end() -> None:
    assert lines(b'{"reply": "resu').next(1.0) is None


def test_a_time_out_keeps_the_bytes_before_it() -> None:
    reader = lines(b"on", None, b"e\n")
    with pytest.raises(TimeoutError):
        reader.next(1.0)
    assert reader.next(1.0) == b"one"


def test_a_buffered_line_needs_no_read() -> None:
    stream = _Stream(b"one\ntwo\n")
    reader = Lines(stream.read)
    assert [reader.next(1.0), reader.next(0.0)] == [b"one", b"two"]
    assert len(stream.timeouts) == 1


def test_all_reads_for_one_line_share_its_timeout() -> None:
    stream = _Stream(b"o", b"n", b"e\n")
    Lines(stream.read).next(5.0)
    assert stream.timeouts == sorted(stream.timeouts, reverse=True)
    assert 0 <= min(stream.timeouts) <= max(stream.timeouts) <= 5.0


def test_a_negative_timeout_still_reads_once() -> None:
    stream = _Stream(b"one\n")
    assert Lines(stream.read).next(-1.0) == b"one"
    assert stream.timeouts == [0.0]


class _Clock:
    """Each reading of the clock is a second later."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_bytes_that_never_end_a_line_do_not_move_the_deadline() -> None:
    reads = itertools.count()

    def endless(timeout: float) -> bytes:
        assert timeout >= 0
        assert next(reads) < 100, "it reads on after the deadline"
        return b"x"

    with pytest.raises(TimeoutError):
        Lines(endless, clock=_Clock()).next(10.0)
    assert next(reads) == 11


def test_a_line_that_is_complete_after_the_deadline_is_returned() -> None:
    assert Lines(_Stream(b"one\ntwo\n").read, clock=_Clock()).next(0.5) == b"one"


@pytest.mark.parametrize("chunks", [[b"x" * 4] * 4, [b"x" * 11 + b"\n"]])
def test_a_line_that_is_too_long_is_refused_and_dropped(chunks: list[bytes]) -> None:
    reader = Lines(_Stream(*chunks).read, max_line=10)
    with pytest.raises(ValueError, match=r"a line of more than 9\.53674e-06 MiB"):
        reader.next(1.0)
    assert reader.next(1.0) is None
    assert Lines(_Stream(b"x" * 10 + b"\n").read, max_line=10).next(1.0) == b"x" * 10


def test_the_limit_is_64_mib_in_the_sentence() -> None:
    chunk = b"x" * (1 << 20)
    with pytest.raises(ValueError, match="a line of more than 64 MiB"):
        Lines(lambda _: chunk).next(60.0)


@given(st.lists(st.binary(max_size=5).map(lambda part: part.replace(b"\n", b"")), max_size=5), st.data())
def test_where_the_stream_is_cut_does_not_matter(expected: list[bytes], draws: st.DataObject) -> None:
    data = b"".join(line + b"\n" for line in expected)
    cuts = sorted(draws.draw(st.sets(st.integers(1, len(data) - 1), max_size=4)) if len(data) > 1 else [])
    chunks = [data[begin:end] for begin, end in itertools.pairwise([0, *cuts, len(data)])] if data else []
    reader = lines(*chunks)
    assert list(iter(lambda: reader.next(1.0), None)) == expected
