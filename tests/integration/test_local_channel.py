"""A server of this machine that writes without an end, to either stream, or that a signal meets while it starts."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from runner.backends.local_channel import LAST_BYTES, ProcessChannel
from tests.integration.conftest import ROOT, alive, wait_for
from tests.support.executables import write_executable

ENDLESS = 'yes "$0" | tr -d "\\n"'


@contextmanager
def channel(folder: Path, script: str) -> Iterator[ProcessChannel]:
    """Lend the channel of a shell script in place of an interpreter."""
    path = write_executable(folder / "python", f"#!/bin/sh\n{script}\n")
    with closing(ProcessChannel(str(path), "cpu", b"")) as opened:
        yield opened


STARTING = """
import os, signal, subprocess, sys
from contextlib import closing
from runner.backends.local_channel import ProcessChannel
from runner.cli import signals

start = subprocess.Popen


def interrupted(*arguments, **options):
    process = start(*arguments, **options)
    print(process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    return process


subprocess.Popen = interrupted
signals.listen()
try:
    with closing(ProcessChannel(sys.argv[1], "cpu")) as server:
        server.receive(60.0)
except signals.Interrupted:
    sys.exit(5)
"""


def test_a_signal_while_a_server_starts_leaves_neither_the_server_nor_its_folder(tmp_path: Path) -> None:
    """The signal was raised before anything knew the process, which then wrote into the folder while it was removed."""
    slow, temporary = write_executable(tmp_path / "python", "#!/bin/sh\nexec sleep 60\n"), tmp_path / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", STARTING, str(slow)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 5, done.stderr
    assert not alive(int(done.stdout))
    assert not list(temporary.iterdir())


def test_an_endless_stderr_moves_no_deadline_and_only_its_end_is_kept(tmp_path: Path) -> None:
    with channel(tmp_path, f"{ENDLESS} >&2") as server:
        begin = time.monotonic()
        with pytest.raises(TimeoutError):
            server.receive(0.5)
        assert time.monotonic() - begin < 30
        assert wait_for(lambda: len(server.words()) == LAST_BYTES)
        with pytest.raises(TimeoutError):
            server.receive(0.5)
        assert len(server.words()) == LAST_BYTES
        assert not list(server.folder.iterdir())


def test_an_endless_line_ends_at_its_longest_length(tmp_path: Path) -> None:
    with channel(tmp_path, ENDLESS) as server, pytest.raises(ValueError, match="a line of more than 64 MiB"):
        server.receive(60.0)


def test_lines_arrive_while_stderr_is_full(tmp_path: Path) -> None:
    with channel(tmp_path, 'head -c 3000000 /dev/zero >&2; echo one; echo "last words" >&2; exit 3') as server:
        assert server.receive(30.0) == b"one"
        assert server.receive(30.0) is None
        assert server.ending() == ("crash", f"the harness server ended with exit 3; last words: {tail(server)}")
        assert server.words().endswith("last words\n")


def tail(server: ProcessChannel) -> str:
    return server.words().strip().splitlines()[-1]


def test_a_server_is_told_apart_by_the_signal_that_killed_it(tmp_path: Path) -> None:
    for number, name in ((9, "SIGKILL"), (35, "signal 35")):
        with channel(tmp_path, f"kill -{number} $$") as server:
            assert server.receive(30.0) is None
            assert server.ending()[1] == f"the harness server was killed by {name}; last words: it printed nothing"


def test_what_a_server_does_not_read_is_not_sent_for_ever(tmp_path: Path) -> None:
    with channel(tmp_path, "exec sleep 60") as server, pytest.raises(TimeoutError):
        server.send(b"x" * (4 << 20), 0.3)
