"""Lines out of a stream, however the bytes arrive."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.backends.line_reader import Lines


class _Stream:
    """Gives its chunks one after the other, None standing for nothing in time, then the end."""

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
    found = lines(b"one\ntwo\n\nthree\n")
    assert [found.next(1.0) for _ in range(5)] == [b"one", b"two", b"", b"three", None]


def test_one_line_in_several_chunks() -> None:
    found = lines(b"o", b"n", b"e\nt", b"wo\n")
    assert [found.next(1.0) for _ in range(3)] == [b"one", b"two", None]


def test_the_end_comes_again_and_again() -> None:
    found = lines(b"one\n")
    assert [found.next(1.0) for _ in range(4)] == [b"one", None, None, None]


def test_a_line_that_was_cut_by_the_end_is_no_line() -> None:
    assert lines(b'{"reply": "resu').next(1.0) is None


def test_nothing_in_time_is_told_and_what_came_before_is_kept() -> None:
    found = lines(b"on", None, b"e\n")
    with pytest.raises(TimeoutError):
        found.next(1.0)
    assert found.next(1.0) == b"one"


def test_a_line_that_is_there_needs_no_reading() -> None:
    stream = _Stream(b"one\ntwo\n")
    found = Lines(stream.read)
    assert [found.next(1.0), found.next(0.0)] == [b"one", b"two"]
    assert len(stream.timeouts) == 1


def test_all_readings_of_one_line_share_its_time() -> None:
    stream = _Stream(b"o", b"n", b"e\n")
    Lines(stream.read).next(5.0)
    assert stream.timeouts == sorted(stream.timeouts, reverse=True)
    assert 0 <= min(stream.timeouts) <= max(stream.timeouts) <= 5.0


def test_time_that_has_run_out_still_looks_once() -> None:
    stream = _Stream(b"one\n")
    assert Lines(stream.read).next(-1.0) == b"one"
    assert stream.timeouts == [0.0]


@given(st.lists(st.binary(max_size=5).map(lambda part: part.replace(b"\n", b"")), max_size=5), st.data())
def test_where_the_stream_is_cut_does_not_matter(wanted: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in wanted)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=4)) if len(whole) > 1 else [])
    chunks = [whole[begin:end] for begin, end in itertools.pairwise([0, *cuts, len(whole)])] if whole else []
    found = lines(*chunks)
    assert list(iter(lambda: found.next(1.0), None)) == wanted
