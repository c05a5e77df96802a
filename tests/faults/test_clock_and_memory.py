"""A clock that is set, and memory that is short."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner.store.run import runs
from tests.faults.bench import HOST, SMALL, Bench
from tests.faults.children import misbehaving
from tests.faults.declared.clock_and_memory import CLOCK_FAULTS
from tests.faults.fault import Fault
from tests.support.executables import write_executable

DAY = 24 * 3600
RUN = ("run", *SMALL, *HOST)
CGROUP = Path("/sys/fs/cgroup/memory")
LIMIT = 500 << 20
TIGHT = """\
#!/bin/sh
# A server gets 60 MB of address space, anything else what it needs.
case "$TMPDIR" in *matrix-runner-*) ulimit -v 60000;; esac
exec {python} "$@"
"""


def clocked(bench: Bench, seconds: float) -> tuple[str, ...]:
    """Return a program whose clock is wrong by some seconds."""
    (bench.folder / "offset").write_text(str(seconds))
    return ("tests.faults.clocked", str(bench.folder / "offset"))


def set_while_measuring(bench: Bench) -> None:
    process = bench.start(*RUN, "--seconds", "0.2", program=clocked(bench, 0))
    bench.measured(process)
    clocked(bench, -DAY if "back" in bench.fault.id else 365 * DAY)
    bench.check(bench.end(process))


def back_resume(bench: Bench, unfinished: Path) -> None:
    bench.take_over(unfinished)
    bench.check(bench("run", "--resume", program=clocked(bench, -3 * 365 * DAY)))
    (resumed,) = bench.events("resumed")
    assert resumed["at"] < time.strftime("%Y")


def in_1970(bench: Bench) -> None:
    bench.check(bench(*RUN, program=clocked(bench, 1000 - time.time())))
    assert runs(bench.reports)[0].id.startswith("19700101-")


def tight_server(bench: Bench) -> None:
    python = write_executable(bench.folder / "python", TIGHT.format(python=sys.executable))
    bench.check(bench("run", *SMALL, "--backend", "host", "--python", str(python)))


@contextmanager
def memory_group() -> Iterator[Path]:
    """A control group with LIMIT of memory; skipped where none can be made."""
    group = CGROUP / f"faults-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(LIMIT))
    except OSError:
        pytest.skip("no control group can be made here")
    try:
        yield group
    finally:
        group.rmdir()


def pressure(bench: Bench) -> None:
    misbehaving(bench, "hog")
    with memory_group() as group:
        enter = ("sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "enter")
        done = bench(*RUN, wrap=enter)
        bench.check_seen(done)
        bench.check_cleaned()
    bench.check_kept()


ACTIONS: Mapping[str, Callable[[Bench], None]] = {
    "clock-back-measure": set_while_measuring,
    "clock-forward-measure": set_while_measuring,
    "clock-1970": in_1970,
    "memory-server": tight_server,
    "memory-pressure": pressure,
}


@pytest.mark.parametrize("fault", CLOCK_FAULTS, ids=lambda fault: fault.id)
def test_a_clock_or_memory(fault: Fault, bench: Bench, request: pytest.FixtureRequest) -> None:
    if fault.id == "clock-back-resume":
        back_resume(bench, request.getfixturevalue("unfinished"))
    else:
        ACTIONS[fault.id](bench)
