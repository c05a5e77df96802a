"""Streams that are closed, full, or have lost their reader."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.faults.bench import HOST, SMALL, Bench
from tests.faults.declared.streams import STREAM_FAULTS
from tests.faults.fault import Fault

RUN = ("run", *SMALL, *HOST)


def reader_gone(bench: Bench) -> None:
    reader, writer = os.pipe()
    stream = bench.fault.id.partition("-")[0]
    streams: dict[str, Any] = {stream: writer}
    process = bench.start(*RUN, "--seconds", "0.2", **streams)
    os.close(writer)
    bench.measured(process)
    os.close(reader)
    bench.check(bench.end(process))


def full(bench: Bench) -> None:
    with Path("/dev/full").open("w") as stream:
        bench.check(bench(*RUN, stdout=stream))


def closed(bench: Bench) -> None:
    stream = {"stdin": "<&-", "stdout": ">&-", "stderr": "2>&-"}[bench.fault.id.partition("-")[0]]
    bench.check(bench(*RUN, wrap=("sh", "-c", f'exec "$@" {stream}', "closed")))


def ascii_alone(bench: Bench) -> None:
    bench.environment |= {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    bench.check(bench(*RUN))
    for command in (("check",), ("accuracy",)):
        done = bench(*command)
        assert done.returncode in {0, 1}, done.stderr
        assert "Traceback" not in done.stderr, done.stderr


ACTIONS: Mapping[str, Callable[[Bench], None]] = {
    "stderr-reader-gone": reader_gone,
    "stdout-reader-gone": reader_gone,
    "stdout-full": full,
    "stdout-closed": closed,
    "stderr-closed": closed,
    "stdin-closed": closed,
    "ascii": ascii_alone,
}


@pytest.mark.parametrize("fault", STREAM_FAULTS, ids=lambda fault: fault.id)
def test_a_stream(fault: Fault, bench: Bench) -> None:
    ACTIONS[fault.id](bench)
