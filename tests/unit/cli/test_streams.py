"""Standard streams whose reader goes, whose disk is full, or whose encoding is narrow."""

import io
import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.cli import streams
from runner.cli.streams import Stream
from runner.core.errors import RunnerError

FULL = Path("/dev/full")


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe: where it is read, and where it is written."""
    reader, writer = os.pipe()
    yield reader, writer
    for descriptor in (reader, writer):
        try:
            os.close(descriptor)
        except OSError:
            continue


def text(descriptor: int, *, required: bool, encoding: str = "utf-8") -> io.TextIOWrapper:
    """Return a stream as ``protect`` makes it."""
    before = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    streams.register_fallback()
    return streams.lasting(Stream(descriptor, required=required), before)


@pytest.mark.parametrize("required", [True, False])
def test_output_without_a_reader_is_dropped(pipe: tuple[int, int], *, required: bool) -> None:
    reader, writer = pipe
    os.close(reader)
    stream = text(writer, required=required)
    for _ in range(3):
        print("a line", file=stream, flush=True)
    assert Path(f"/proc/self/fd/{writer}").readlink() == Path(os.devnull), "children that inherit it can write, too"


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_a_full_disk_is_an_error_of_a_result_and_none_of_a_note() -> None:
    descriptor = os.open(FULL, os.O_WRONLY)
    print("a note", file=text(descriptor, required=False), flush=True)
    os.close(descriptor)
    descriptor = os.open(FULL, os.O_WRONLY)
    stream = text(descriptor, required=True)
    with pytest.raises(RunnerError, match="cannot be written: No space left on device") as error:
        print("a result", file=stream, flush=True)
    assert error.value.exit_code == 1
    stream.flush()  # at the end of the interpreter
    os.close(descriptor)


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", "95 % - 1.2 +- 0.1 x -> ? ?"),
        ("latin-1", "95 % - 1.2 ± 0.1 \N{MULTIPLICATION SIGN} -> ? ?"),
        ("utf-8", None),
    ],
)
def test_a_narrow_encoding_gets_fallbacks(pipe: tuple[int, int], encoding: str, shown: str | None) -> None:
    reader, writer = pipe
    line = "95 % \N{EN DASH} 1.2 ± 0.1 \N{MULTIPLICATION SIGN} → \N{SNOWMAN} \udcff"
    print(line, file=text(writer, required=True, encoding=encoding), end="", flush=True)
    assert os.read(reader, 1000).decode(encoding) == (shown or line.replace("\udcff", "?"))


def test_a_stream_that_does_not_block_is_waited_for(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = pipe
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    content = b"x" * 200_000
    read = bytearray()
    monkeypatch.setattr(select, "select", lambda *_: read.extend(os.read(reader, 1 << 20)))
    written = 0
    while written < len(content):
        written += Stream(writer, required=True).write(content[written:])
    read += os.read(reader, 1 << 20)
    assert read == content
