"""The server and its children, through the real protocol, under real interpreters."""

import ast
import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.backends import harness_archive
from runner.backends.local_channel import ProcessChannel
from runner.harness import cases
from runner.measure.session import Session
from tests.harness.conftest import VERSIONS, Ask, environment, request
from tests.support.cases import TINY

FAILURES_OF_A_PROCESS = (
    ("exits", "crash", "exit 3 without a result; last words: about to leave"),
    ("raises", "crash", "RuntimeError: no such kernel"),
    ("crashes", "crash", "killed by signal SIGSEGV"),
    ("refuses-memory", "oom", "can't allocate memory"),
    ("no-such-slug", "crash", "no implementation 'no-such-slug'"),
)
"""Implementation of the faulty adapter -> class and reason, whether its child is forked or a fresh interpreter."""


@pytest.mark.parametrize("version", VERSIONS)
def test_server_measures_under_each_python(
    version: str, open_session: Callable[[str], Session], tmp_path: Path
) -> None:
    interpreter = environment(version)
    if interpreter is None:
        pytest.skip(f"no Python {version} on this machine")
    session = open_session(interpreter)
    assert str(session.facts["python"]).startswith(version)
    reply = request(session, "sound", tmp_path)
    assert reply["status"] == "ok", reply
    assert len(reply["seconds"]) >= 3
    assert all(second > 0 for second in reply["seconds"] + reply["warmup"])
    assert reply["loss_error"] < 1e-6
    assert max(reply["gradient_errors"].values()) < 1e-5
    assert reply["forward_error"] < 1e-6
    assert request(session, "crashes", tmp_path)["class"] == "crash"
    reply = to_its_end(session, request(session, "sound", tmp_path, turns=True))
    assert reply["status"] == "ok", reply
    assert sum(reply["turns"]) == len(reply["seconds"])  # a busy machine has room for few turns


@pytest.mark.parametrize(
    ("slug", "kind", "words"),
    [
        *FAILURES_OF_A_PROCESS,
        ("nan", "nan", "a loss is not finite"),
        ("wrong-gate", "wrong-result", "allowed"),
        ("lost-bias", "wrong-result", "allowed"),
        ("doubled-bias", "wrong-result", "losses are off"),
        ("idle-forward", "wrong-result", "the forward pass is off by 1.0e+00 of its norm, 1e-03 allowed"),
    ],
)
def test_failure_of_a_child_has_its_class_and_the_server_continues(
    slug: str, kind: str, words: str, open_session: Callable[[str], Session], python: str, ask: Ask
) -> None:
    session = open_session(python)
    reply = ask(slug, session)
    assert (reply["status"], reply["class"]) == ("failed", kind), reply
    assert words in reply["reason"]
    assert ask("sound", session)["status"] == "ok"


def test_gradients_of_a_verified_cell_are_compared_again_only_where_they_are_timed(
    open_session: Callable[[str], Session], python: str, ask: Ask
) -> None:
    session = open_session(python)
    again = ask("sound", session, already_verified=True)
    assert "gradient_errors" not in again
    assert len(again["loss"]) == len(again["reference_loss"]) == 3
    assert again["forward_error"] < 1e-6
    assert ask("sound", session, already_verified=True, phase="gradient")["gradient_errors"]
    for slug in ("wrong-gate", "lost-bias", "doubled-bias", "nan"):
        assert ask(slug, session, already_verified=True)["status"] == "failed"
    assert "the forward pass is off" in ask("idle-forward", session, already_verified=True, phase="forward")["reason"]
    assert "forward_error" in ask("sound", session, already_verified=True, phase="compile")


def test_compile_time_of_the_first_call_is_not_in_the_warm_up(ask: Ask) -> None:
    reply = ask("slow-first", phase="forward", already_verified=True)
    assert reply["status"] == "ok", reply
    assert reply["warmup"][0] < 0.3  # what the first call sleeps


def test_timed_gradient_that_computes_nothing_is_a_wrong_result(ask: Ask) -> None:
    reply = ask("idle-gradient", phase="gradient")
    assert (reply["status"], reply["class"]) == ("failed", "wrong-result")
    assert "left out" in reply["reason"]
    assert ask("idle-gradient", phase="train")["status"] == "ok"


def test_reply_of_a_wrong_result_has_both_traces_of_losses(ask: Ask) -> None:
    reply = ask("lost-bias")
    assert len(reply["loss"]) == len(reply["reference_loss"]) == 3
    assert reply["loss"] != reply["reference_loss"]


def test_forward_pass_that_goes_wrong_while_timed_is_a_wrong_result_without_samples(ask: Ask) -> None:
    reply = ask("late-forward", phase="forward")
    assert (reply["status"], reply["class"]) == ("failed", "wrong-result"), reply
    assert "after the timing" in reply["reason"]
    assert "seconds" not in reply
    for phase in ("train", "compile"):
        assert ask("late-forward", phase=phase)["status"] == "ok"


def test_garbage_on_stdout_goes_to_the_log_and_does_not_disturb_the_protocol(ask: Ask) -> None:
    reply = ask("chatters")
    assert reply["status"] == "ok"
    assert "garbage" in reply["log"]
    assert len(reply["log"]) <= 64 * 1024


def test_child_that_hangs_is_killed_with_the_processes_it_started(ask: Ask) -> None:
    begin = time.monotonic()
    reply = ask("hangs", timeout=1.0)
    assert reply["class"] == "timeout"
    assert "1 s" in reply["reason"]
    assert time.monotonic() - begin < 15
    assert not sleepers()


def test_process_that_a_child_leaves_running_is_killed(ask: Ask) -> None:
    assert ask("leaves-process")["status"] == "ok"
    assert not sleepers()


def test_child_above_its_memory_limit_fails_with_oom(ask: Ask) -> None:
    reply = ask("hogs", memory=600 << 20)
    assert reply["class"] == "oom"
    assert "0.6 GiB" in reply["reason"]


def test_death_of_a_server_is_a_crash_and_kills_its_child(
    open_session: Callable[[str], Session], python: str, ask: Ask
) -> None:
    session = open_session(python)
    reply = ask("kills-server", session)
    assert reply["class"] == "crash"
    assert "SIGKILL" in reply["reason"]
    assert not session.alive


def test_end_of_stdin_ends_the_server_and_its_child(python: str, faulty_harness: bytes, tmp_path: Path) -> None:
    channel = ProcessChannel(python, "cpu", faulty_harness)
    try:
        session = Session(channel, "test#1")
        session.hello("numpy", 1, "cpu", 60)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("runner.measure.session.SILENCE", 1.5)
            patch.setattr("runner.measure.session.GRACE", 0.5)
            assert request(session, "hangs", tmp_path, timeout=0.5)["class"] == "timeout"
        channel.stdin.close()
        assert channel.process.wait(60) == 0
    finally:
        channel.close()


def test_close_removes_the_temporary_folder_of_a_server(python: str) -> None:
    channel = ProcessChannel(python, "cpu")
    folder = channel.folder
    session = Session(channel, "test#1")
    session.hello("numpy", 1, "cpu", 60)
    assert folder.exists()
    session.close()
    session.close()
    assert not folder.exists()


def test_missing_framework_fails_with_import(python: str) -> None:
    session = Session(ProcessChannel(python, "cpu"), "test#1")
    try:
        reply = session.hello("torch", 1, "cpu", 60)
    finally:
        session.close()
    assert reply["class"] == "import"
    assert "No module named 'torch'" in reply["reason"]


def test_an_import_that_opens_a_gpu_is_refused_in_the_server_and_works_in_each_child(
    python: str, opening_harness: bytes, tmp_path: Path
) -> None:
    with contextlib.closing(Session(ProcessChannel(python, "cpu", opening_harness), "test#1")) as session:
        reply = session.hello("numpy", 1, "cpu", 60)
        assert (reply["status"], reply["class"], reply["opened"]) == ("failed", "device", "/dev/zero")
        assert reply["reason"] == "the import of numpy opens /dev/zero"
    with contextlib.closing(Session(ProcessChannel(python, "cpu", opening_harness), "test#2")) as session:
        assert session.hello("numpy", 1, "cpu", 60, load_in_child=True)["status"] == "ok"
        assert session.facts["version"] == "1"
        assert request(session, "sound", tmp_path)["status"] == "ok"


def test_first_context_leaves_compiled_code_in_the_cache(python: str, faulty_harness: bytes, tmp_path: Path) -> None:
    with contextlib.closing(Session(ProcessChannel(python, "cpu", faulty_harness), "test#1")) as session:
        assert session.hello("numpy", 1, "cpu", 60, cache=str(tmp_path))["status"] == "ok"
        assert session.facts["driver_cache"] == str(tmp_path / "cuda_cache_path")
        assert session.facts["checks"] == "1"  # before the import


def test_cold_start_keeps_the_gpu_code_that_the_driver_compiled(ask: Ask, session: Session, tmp_path: Path) -> None:
    driver, compiler = _caches(ask("names-caches", session, phase="compile"))
    assert driver.parent == compiler.parent != tmp_path
    driver, compiler = _caches(ask("names-caches", session, phase="compile", driver_cache=str(tmp_path)))
    assert driver == tmp_path / "cuda_cache_path"
    assert compiler.parent != tmp_path


def _caches(reply: dict[str, Any]) -> tuple[Path, Path]:
    """Return the folders that a child of ``names-caches`` printed."""
    assert reply["status"] == "ok", reply
    line = next(line for line in reply["log"].splitlines() if line.startswith("["))
    driver, compiler = ast.literal_eval(line)
    return Path(driver), Path(compiler)


def test_compile_phases_give_one_sample_each(ask: Ask) -> None:
    for phase in ("compile", "compile-warm"):
        reply = ask("sound", phase=phase)
        assert reply["status"] == "ok", reply
        assert reply["seconds"] == [reply["compile_seconds"]]


def test_a_warm_start_that_would_be_a_cold_one_has_no_time(ask: Ask) -> None:
    assert ask("keeps-nothing", phase="compile")["status"] == "ok"
    reply = ask("keeps-nothing", phase="compile-warm")
    assert (reply["status"], reply["class"]) == ("failed", "crash")
    assert reply["reason"] == "it keeps no compiled programs on disk"
    assert "seconds" not in reply


def test_cold_cells_are_those_that_no_child_has_compiled(ask: Ask, session: Session, tmp_path: Path) -> None:
    names = ("key", "implementation", "phase", "precision")
    cells = [
        dict(zip(names, (cases.key(TINY), slug, "train", "fp32"), strict=True)) for slug in ("sound", "compiles-long")
    ]
    assert session.cold(str(tmp_path), cells) == {"1": 60.0}
    assert ask("compiles-long", session, phase="forward")["status"] == "ok"
    assert session.cold(str(tmp_path), cells) == {"1": 60.0}
    assert ask("compiles-long", session)["status"] == "ok"
    assert session.cold(str(tmp_path), cells) == {}


def test_child_is_stopped_while_it_waits_for_its_turn(ask: Ask, session: Session) -> None:
    replies = [ask("sound", session, turns=True)]
    assert replies[0] == {"id": replies[0]["id"], "reply": "turn", "stage": "first"}
    while replies[-1]["reply"] == "turn":
        assert states(session) == ["T"]
        time.sleep(
            0.05 if len(replies) in (1, 2, 6) else 0
        )  # neither a sample, the first call nor the building includes it
        replies.append(session.go_on(20.0))
    *waits, result = replies
    stages = [reply["stage"] for reply in waits]
    assert stages == ["first", "called", "built", "warm", *["turn"] * (len(stages) - 5), "timed"]
    assert {"batch", "calls", "step"} == {*replies[3]["pace"]}
    assert result["status"] == "ok", result
    assert result["build_seconds"] + result["first_call_seconds"] < 0.05
    assert len(result["turns"]) == len(stages) - 5
    assert result["leads"]
    assert len(result["leads"]) % len(result["turns"]) == 0
    assert sum(result["turns"]) == len(result["seconds"])
    assert ask("sound", session)["status"] == "ok"


def test_child_takes_turns_by_the_plan_that_it_gets(ask: Ask, session: Session) -> None:
    reply = ask("sound", session, turns=True)
    while reply.get("stage") != "warm":
        reply = session.go_on(20.0)
    first = reply["pace"]["calls"] + 5
    plan = {"batch": 3, "samples": 4, "leads": 0, "first_call": first}
    result = to_its_end(session, session.go_on(20.0, plan))
    assert result["status"] == "ok", result
    assert (result["batch"], {*result["turns"]}, result["leads"], result["first_call"]) == (3, {4}, [], first)


def test_death_of_a_child_that_waits_for_its_plan_is_a_crash(ask: Ask, session: Session) -> None:
    reply = ask("sound", session, turns=True)
    while reply.get("stage") != "warm":
        reply = session.go_on(20.0)
    ((pid, _),) = children(session)
    os.kill(pid, signal.SIGKILL)
    reply = session.go_on(20.0, {"batch": 1, "samples": 1, "leads": 0, "first_call": 0})
    assert (reply["class"], "SIGKILL" in reply["reason"]) == ("crash", True), reply
    assert ask("sound", session)["status"] == "ok"


def test_waiting_for_a_turn_does_not_count_towards_the_timeout(ask: Ask, session: Session) -> None:
    reply = ask("sound", session, turns=True, timeout=4.0)
    time.sleep(4.5)
    assert to_its_end(session, reply)["status"] == "ok"


def test_process_of_a_stopped_child_does_not_outlive_its_server(ask: Ask, session: Session) -> None:
    assert ask("leaves-process", session, turns=True)["stage"] == "first"
    assert session.go_on(20.0)["stage"] == "called"
    assert [line for line in command_lines() if "time.sleep(600)" in line]
    session.close()
    assert not sleepers()


def test_death_of_a_stopped_child_is_a_crash(ask: Ask, session: Session) -> None:
    ask("sound", session, turns=True)
    ((pid, _),) = children(session)
    os.kill(pid, signal.SIGKILL)
    reply = session.go_on(20.0)
    assert (reply["class"], "SIGKILL" in reply["reason"]) == ("crash", True), reply
    assert ask("sound", session)["status"] == "ok"


def test_stopped_child_does_not_outlive_its_server(ask: Ask, session: Session) -> None:
    ask("sound", session, turns=True)
    ((pid, _),) = children(session)
    session.close()
    for _ in range(400):
        if not Path(f"/proc/{pid}").exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} is still there")


def to_its_end(session: Session, reply: dict[str, Any]) -> dict[str, Any]:
    """Give a child turn after turn; return its result."""
    while reply.get("reply") == "turn":
        reply = session.go_on(20.0)
    return reply


@pytest.fixture
def session(open_session: Callable[[str], Session], python: str) -> Session:
    """A server with the newest interpreter."""
    return open_session(python)


def children(session: Session) -> list[tuple[int, str]]:
    """Return (process number, state) of each child of a server."""
    assert isinstance(session.channel, ProcessChannel)
    server = session.channel.process.pid
    processes = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == server:
                processes.append((int(path.parent.name), state))
    return processes


def states(session: Session) -> list[str]:
    """Return the states of a server's children; T is stopped."""
    return [state for _, state in children(session)]


def test_version_of_the_harness_depends_on_code_not_on_comments_and_docstrings(tmp_path: Path) -> None:
    def version(text: str) -> str:
        path = Path(tempfile.mkdtemp(dir=tmp_path)) / "a.py"
        path.write_text(text)
        return harness_archive.code_hash((path,))

    first = version('"""One."""\nx = 1\n')
    assert version('"""Two."""\n# a comment\nx  =  1\n') == first
    assert version('"""One."""\nx = 2\n') != first


def test_version_of_the_harness_survives_moving_code_between_files(tmp_path: Path) -> None:
    def version(**files: str) -> str:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        paths = tuple(folder / f"{name}.py" for name in files)
        for path, text in zip(paths, files.values(), strict=True):
            path.write_text(text)
        return harness_archive.code_hash(paths)

    first = version(timing="def median(): return 1\n", child="from .timing import median\ndef run(): return median()\n")
    renamed = version(
        clock="def median(): return 1\n", worker="from .clock import median\ndef run(): return median()\n"
    )
    merged = version(worker="def run(): return median()\ndef median(): return 1\n")
    assert first == renamed == merged
    assert version(worker="def run(): return median()\ndef median(): return 2\n") != first


def sleepers() -> list[str]:
    """Return the command lines of the processes that the faulty adapter started and that do not end within 20 s."""
    lines: list[str] = []
    for _ in range(400):
        lines = [line for line in command_lines() if "time.sleep(600)" in line]
        if not lines:
            break
        time.sleep(0.05)
    return lines


def command_lines() -> list[str]:
    """Return the command lines of the servers of this test session and of what they started, by their TMPDIR."""
    mark = f"\0TMPDIR={tempfile.gettempdir()}/".encode()
    lines: list[str] = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark in b"\0" + (path / "environ").read_bytes():
                lines.append((path / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return lines


def test_a_description_that_fails_ends_no_measurement(python: str, silent_harness: bytes, tmp_path: Path) -> None:
    with contextlib.closing(Session(ProcessChannel(python, "cpu", silent_harness), "test#1")) as session:
        assert session.hello("numpy", 1, "cpu", 60)["status"] == "ok"
        assert session.facts["version"] == "1"
        assert session.facts["allocator"]
        assert request(session, "sound", tmp_path)["status"] == "ok"
