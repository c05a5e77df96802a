"""What a child does to its server, and what it leaves behind: the right class, and nothing left, in some twenty ways."""

import ast
import contextlib
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.backends.local_channel import ProcessChannel
from runner.measure.session import Session
from tests.harness.conftest import Ask, environment, request

MIB = 1 << 20
OLDEST = "3.6"
PYTHON = "3.11"


@pytest.fixture(scope="module")
def python() -> str:
    """The interpreter of the servers of this module."""
    interpreter = environment(PYTHON)
    if interpreter is None:
        pytest.skip(f"no Python {PYTHON} on this machine")
    return interpreter


@pytest.fixture
def faulty_harness(hostile_harness: bytes) -> bytes:
    """The harness of the sessions that ``open_session`` starts."""
    return hostile_harness


@pytest.fixture
def session(open_session: Callable[[str], Session], python: str) -> Session:
    """A server with the hostile adapter."""
    return open_session(python)


def family(session: Session) -> set[int]:
    """Return the processes of a server: those that started with its temporary folder, wherever they are in the tree."""
    assert isinstance(session.channel, ProcessChannel)
    mark = f"\0TMPDIR={session.channel.folder}".encode()
    pids = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in b"\0" + path.read_bytes():
                pids.add(int(path.parent.name))
    return pids


def files(session: Session) -> set[str]:
    """Return what is in the temporary folder of a server, but its log and its harness."""
    assert isinstance(session.channel, ProcessChannel)
    paths = (path.relative_to(session.channel.folder) for path in session.channel.folder.rglob("*"))
    return {str(path) for path in paths if path.name not in ("stderr", "harness.zip") and not path.name.startswith("tmp")}


def check_nothing_is_left(session: Session) -> None:
    """Wait until the child is gone; only the server remains, without new files and with no more descriptors."""
    assert isinstance(session.channel, ProcessChannel)
    session.settle()
    assert session.alive
    assert family(session) == {session.channel.process.pid}
    assert files(session) == set()
    assert len(os.listdir(f"/proc/{session.channel.process.pid}/fd")) <= 4


def resident(session: Session) -> int:
    """Return the most memory that a server has had."""
    assert isinstance(session.channel, ProcessChannel)
    status = Path(f"/proc/{session.channel.process.pid}/status").read_text("ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


SURVIVED = (
    "leaves-session",
    "leaves-daemon",
    "leaves-deaf-daemon",
    "leaves-stopped-daemon",
    "leaves-program",
    "leaves-200",
    "leaves-hoppers",
    "leaves-printing-daemon",
    "adopts-orphans-itself",
    "returns-twice",
    "writes-files",
    "writes-deep",
)
FAILED = (
    ("exits-with-daemon", "crash", "exit 3 without a result"),
    ("joins-the-servers-group", "timeout", "not finished after 1 s"),
    ("stops", "timeout", "not finished after 1 s"),
    ("deaf", "timeout", "not finished after 1 s"),
    ("closes-descriptors", "crash", "without a result"),
    ("ends-by-real-time-signal", "crash", "killed by signal 40"),
    ("forges-its-result", "crash", "not the harness's result"),
    ("nests-its-result", "crash", "not the harness's result"),
    ("floods-its-result", "crash", "not the harness's result"),
)


def check_all(session: Session, cache: Path) -> None:
    """Measure every mode in one server; after each, nothing is left and the server goes on."""
    for slug in SURVIVED:
        reply = request(session, slug, cache)
        assert reply["status"] == "ok", (slug, reply)
        check_nothing_is_left(session)
    for slug, kind, words in FAILED:
        reply = request(session, slug, cache, timeout=1.0)
        assert (reply["class"], words in reply["reason"]) == (kind, True), (slug, reply)
        check_nothing_is_left(session)
    assert request(session, "sound", cache)["status"] == "ok"


@pytest.mark.parametrize("version", [PYTHON, OLDEST])
def test_child_gets_its_class_and_leaves_nothing(
    version: str, open_session: Callable[[str], Session], tmp_path: Path
) -> None:
    interpreter = environment(version)
    if interpreter is None:
        pytest.skip(f"no Python {version} on this machine")
    check_all(open_session(interpreter), tmp_path)
