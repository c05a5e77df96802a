"""What a child does to its server and leaves behind: it gets the right class, and nothing is left."""

import ast
import contextlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from runner.backends import harness_archive
from runner.backends.local_channel import ProcessChannel
from runner.measure.session import Session
from tests.harness.conftest import Ask, environment, hostile_folder, request

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
    return {
        str(path) for path in paths if path.name not in ("stderr", "harness.zip") and not path.name.startswith("tmp")
    }


def check_nothing_is_left(session: Session) -> None:
    """Wait until the child is gone; only the server remains, without new files and without pipes to a child."""
    assert isinstance(session.channel, ProcessChannel)
    session.settle()
    assert session.alive
    assert family(session) == {session.channel.process.pid}
    assert files(session) == set()
    links = (path.readlink() for path in Path(f"/proc/{session.channel.process.pid}/fd").iterdir())
    assert sum(str(link).startswith("pipe:") for link in links) == 4  # stdin, the replies, stdout and stderr


def resident(session: Session) -> int:
    """Return the most memory that a server has had."""
    assert isinstance(session.channel, ProcessChannel)
    status = Path(f"/proc/{session.channel.process.pid}/status").read_text("ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


SURVIVED = (
    "leaves-process",
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
FAILED = {
    "exits-with-daemon": ("crash", "exit 3 without a result"),
    "joins-the-servers-group": ("timeout", "not finished after 1 s"),
    "stops": ("timeout", "not finished after 1 s"),
    "deaf": ("timeout", "not finished after 1 s"),
    "closes-descriptors": ("crash", "without a result"),
    "ends-by-real-time-signal": ("crash", "killed by signal 40"),
    "forges-its-result": ("crash", "not the harness's result"),
    "nests-its-result": ("crash", "not the harness's result"),
    "floods-its-result": ("crash", "not the harness's result"),
}


ON_OLD_PYTHONS = (
    "leaves-daemon",
    "leaves-hoppers",
    "writes-files",
    "writes-deep",
    "forges-its-result",
    "floods-its-result",
)


def check(session: Session, cache: Path, slugs: Sequence[str]) -> None:
    """Measure the modes in one server; after each, nothing is left, and the server goes on."""
    for slug in slugs:
        kind, words = FAILED.get(slug, (None, ""))
        reply = request(session, slug, cache, timeout=1.0 if kind == "timeout" else 20.0)
        assert (reply.get("class"), words in reply.get("reason", "")) == (kind, True), (slug, reply)
        check_nothing_is_left(session)
    assert request(session, "sound", cache)["status"] == "ok"


@pytest.mark.parametrize(("version", "slugs"), [(PYTHON, (*SURVIVED, *FAILED)), (OLDEST, ON_OLD_PYTHONS)])
def test_child_gets_its_class_and_leaves_nothing(
    version: str, slugs: Sequence[str], open_session: Callable[[str], Session], tmp_path: Path
) -> None:
    interpreter = environment(version)
    if interpreter is None:
        pytest.skip(f"no Python {version} on this machine")
    check(open_session(interpreter), tmp_path, slugs)


def test_child_may_print_without_end_and_the_server_keeps_the_last_of_it(ask: Ask, session: Session) -> None:
    before = resident(session)
    reply = ask("prints-300-mib", session)
    assert reply["status"] == "ok", reply
    assert len(reply["log"]) == 64 * 1024
    assert reply["log"].endswith("x\nlast words\n")
    assert resident(session) - before < 16 * MIB


def test_result_without_end_is_refused_and_the_server_keeps_a_part_of_it(ask: Ask, session: Session) -> None:
    before = resident(session)
    assert ask("floods-its-result", session)["class"] == "crash"
    assert resident(session) - before < 100 * MIB  # 32 MiB, and two copies while it is decoded


def test_memory_of_what_a_child_started_counts_towards_its_limit(ask: Ask, session: Session) -> None:
    reply = ask("allocates-in-daemon", session, memory=300 * MIB)
    assert (reply["class"], "0.3 GiB" in reply["reason"]) == ("oom", True), reply
    check_nothing_is_left(session)


def test_memory_that_forked_processes_share_counts_once(ask: Ask, session: Session) -> None:
    assert ask("shares-memory", session, memory=600 * MIB)["status"] == "ok"
    check_nothing_is_left(session)


def test_orphans_that_end_while_a_child_runs_are_reaped(ask: Ask, session: Session) -> None:
    assert "children of the server: 1\n" in ask("makes-orphans", session)["log"]


def test_child_works_in_a_temporary_folder(ask: Ask, session: Session) -> None:
    log = ask("writes-files", session)["log"]
    current, temporary, variable, server = ast.literal_eval(log.splitlines()[0])
    assert current == temporary == variable
    assert isinstance(session.channel, ProcessChannel)
    assert server == str(session.channel.folder)


@pytest.mark.parametrize("slug", ["changes-the-harness", "removes-the-harness"])
def test_harness_that_a_child_changes_fails_its_cell_and_is_as_before_for_the_next(
    slug: str, ask: Ask, session: Session
) -> None:
    reply = ask(slug, session)
    assert (reply["class"], reply["reason"]) == (
        "crash",
        "it has changed the file of the harness, which belongs to its server",
    )
    check_nothing_is_left(session)
    assert ask("sound", session, process="plain")["status"] == "ok"  # imports all of it anew


def test_folder_that_takes_the_place_of_the_servers_is_left_alone(ask: Ask, session: Session, tmp_path: Path) -> None:
    victim = tmp_path / "victim" / "inner"
    victim.mkdir(parents=True)
    (victim / "data").write_text("mine")
    ask("moves-the-servers-folder", session)
    session.close()
    assert (victim / "data").read_text() == "mine"


def test_child_may_read_and_write_what_the_kernel_says_of_it(ask: Ask, session: Session) -> None:
    assert "score: 1000" in ask("reads-itself", session)["log"]


def test_child_that_kills_its_server_leaves_nothing_after_the_end_of_the_session(ask: Ask, session: Session) -> None:
    reply = ask("kills-server-and-leaves-daemon", session)
    assert (reply["class"], "SIGKILL" in reply["reason"]) == ("crash", True), reply
    session.close()
    assert not family(session)


def test_daemon_of_a_child_ends_with_the_server(ask: Ask, session: Session) -> None:
    assert ask("leaves-daemon", session, turns=True)["stage"] == "first"
    assert session.go_on(20.0)["stage"] == "called"
    assert len(family(session)) == 3
    session.close()
    assert not family(session)


def test_server_without_prctl_still_ends_the_process_group_of_a_child(python: str, tmp_path: Path) -> None:
    folder = hostile_folder(tmp_path)
    procfs = (folder / "procfs.py").read_text("utf-8")
    assert ".prctl(" in procfs
    (folder / "procfs.py").write_text(procfs.replace(".prctl(", ".no_such_function("))
    channel = ProcessChannel(python, "cpu", harness_archive.pack(folder))
    with contextlib.closing(Session(channel, "test#1")) as session:
        assert session.hello("numpy", 1, "cpu", 60)["status"] == "ok"
        assert request(session, "leaves-process", tmp_path)["status"] == "ok"
        session.settle()
        limit = time.monotonic() + 60.0  # the server has killed the process, and cannot wait for its end
        while len(family(session)) > 1 and time.monotonic() < limit:
            time.sleep(0.01)
        check_nothing_is_left(session)


def test_line_that_is_no_request_gets_an_answer_and_the_server_goes_on(session: Session) -> None:
    session.settle()
    for line, words in {
        b"{\n": "JSONDecodeError",
        b"\xff\n": "UnicodeDecodeError",
        b"[1]\n": "not a JSON object",
        b"[" * 100_000 + b"\n": "nested too deeply",
        b"{}\n": "KeyError",
        b'{"op": []}\n': "TypeError",
        b'{"op": "no-such-request", "id": 7}\n': "no-such-request",
        b'{"op": "measure", "id": 7}\n': "KeyError",
        b'{"op": "reference", "id": 7, "key": "k", "gradients": 3}\n': "AttributeError",
    }.items():
        session.channel.send(line, 10.0)
        answer = session.channel.receive(10.0)
        assert answer is not None
        reply = json.loads(answer)
        assert (reply["status"], reply["class"], words in reply["reason"]) == ("failed", "crash", True), reply
        assert reply["id"] == (7 if b'"id"' in line else None)
    assert "Traceback" in session.channel.words()
    assert session.cold("/nowhere", []) == {}
