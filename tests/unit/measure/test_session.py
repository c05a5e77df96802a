"""A session with a server that answers as it likes."""

import itertools
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from runner.backends.sending import UnreadError
from runner.harness import protocol
from runner.measure.session import EXTRA_TURNS, Session
from tests.support.cases import TINY
from tests.support.fake_servers import VERIFIED

REQUEST = {"key": "k", "case": TINY, "phase": "train", "timeout": 5.0, "seconds": 0.1, "turns": True}
OK = {"status": "ok", "seconds": [0.5], **VERIFIED}


class Scripted:
    """A Channel that answers each request with the next messages; an exception is raised instead."""

    def __init__(self, *answers: Any) -> None:
        """Take the answers, in order: fields, a line, or several lines."""
        self.answers = deque(answers)
        self.lines = deque[bytes]()
        self.timeouts: list[float] = []
        self.closed = False
        self.discarded = 0
        self.requests: list[dict[str, Any]] = []

    def send(self, data: bytes, timeout: float) -> None:
        """See Channel."""
        assert timeout > 0
        request = protocol.decode(data)
        self.requests.append(request)
        answer = {"status": "ok"} if request["op"] == "reference" else self.answers.popleft()
        if isinstance(answer, list):
            self.lines.extend(answer)
        elif isinstance(answer, bytes):
            self.lines.append(answer)
        else:
            self.lines.append(protocol.encode({"id": request["id"], "reply": "result", **answer}))

    def receive(self, timeout: float) -> bytes | None:
        """See Channel."""
        self.timeouts.append(timeout)
        return self.lines.popleft() if self.lines else None

    def discard(self) -> None:
        """See Channel."""
        self.discarded += len(self.lines)
        self.lines.clear()

    def words(self) -> str:
        """See Channel."""
        return "last \x1b[2Jwords\n"

    def ending(self) -> tuple[str, str]:
        """See Channel."""
        return "crash", "it ended; last words: \x00\x1b[2J" + "x" * 10_000

    def close(self) -> None:
        """See Channel."""
        self.closed = True


def measured(
    *answers: Any, clock: Callable[[], float] = time.monotonic, **changes: Any
) -> tuple[Session, dict[str, Any]]:
    """Measure a cell; give it turns as long as it waits."""
    session = Session(Scripted(*answers), "a#1", clock)
    reply = session.measure({**REQUEST, **changes}, dict)
    while reply.get("reply") == "turn":
        reply = session.go_on(35.0)
    return session, reply


def waits(*stages: str) -> list[dict[str, str]]:
    return [{"reply": "turn", "stage": stage} for stage in stages]


def test_a_child_builds_takes_turns_and_ends() -> None:
    session, reply = measured(*waits("built", "warm", *["turn"] * 10, "timed"), OK)
    assert reply == {**OK, "reply": "result"}
    assert session.alive


@pytest.mark.parametrize(
    "stages",
    [
        ("built", "built"),
        ("turn", "built"),
        ("turn", "warm"),
        ("built", "warm", "warm"),
        ("built", "timed", "turn"),
        ("built", "timed", "timed"),
        ("built", *["turn"] * (10 + EXTRA_TURNS + 1)),
    ],
)
def test_turns_that_no_child_takes_end_the_server(stages: tuple[str, ...]) -> None:
    session, reply = measured(*waits(*stages), OK)
    assert (reply["status"], reply["class"]) == ("failed", "crash")
    assert reply["reason"].startswith("the harness server sent that its child waits at the stage")
    assert not session.alive


def test_all_turns_of_a_request_share_its_time() -> None:
    clock = itertools.count(0.0, 2.0)
    session, reply = measured(*waits("built", *["turn"] * 15), clock=lambda: next(clock))
    assert (reply["class"], reply["reason"]) == ("timeout", "the harness server sent no result within 35 s")
    assert not session.alive


def test_heartbeats_do_not_move_the_deadline() -> None:
    clock = itertools.count(0.0, 1.0)
    channel = Scripted([b'{"reply": "heartbeat"}'] * 1000)
    reply = Session(channel, "a#1", lambda: next(clock)).hello("numpy", 1, "cpu", 70.0)
    assert (reply["class"], reply["reason"]) == ("timeout", "the harness server sent no result within 100 s")
    assert len(channel.lines) > 800


class Unread(Scripted):
    """A Channel to a server that does not read."""

    def send(self, data: bytes, timeout: float) -> None:
        """See Channel."""
        assert data
        self.timeouts.append(timeout)
        raise UnreadError("read nothing for 60 s")


def test_a_request_that_nobody_reads_ends_with_its_deadline() -> None:
    """The channel gets the seconds that are left of the request's time limit."""
    channel, clock = Unread(), itertools.count(0.0, 5.0)
    reply = Session(channel, "a#1", lambda: next(clock)).ask({"op": "measure"}, 9.0)
    assert channel.timeouts == [4.0]
    assert (reply["class"], reply["reason"]) == ("timeout", "the harness server sent no result within 9 s")


def test_a_request_that_nobody_reads_for_a_minute_ends_before_its_deadline() -> None:
    reply = Session(Unread(), "a#1", lambda: 0.0).ask({"op": "measure"}, 600.0)
    assert (reply["class"], reply["reason"]) == ("timeout", "the harness server read nothing for 60 s")


def test_a_turn_that_was_not_offered_is_a_crash() -> None:
    session, reply = measured(*waits("built"), turns=False)
    assert reply["class"] == "crash"
    assert reply["reason"] == "the harness server sent reply = 'turn', expected 'result'"
    assert reply["log"] == "last \\x1b[2Jwords\n"
    assert not session.alive


def test_replies_to_other_requests_are_ignored() -> None:
    others = [b'{"id": 99, "seconds": 5}', b'{"reply": "heartbeat"}', b'{"id": null}', b'{"id": [1]}', b'{"id": 2}']
    channel = Scripted(others)
    session = Session(channel, "a#1")
    reply = session.measure(dict(REQUEST), dict)
    assert reply["class"] == "crash"
    assert reply["reason"].startswith("it ended; last words: \\x00\\x1b[2Jxxx")
    assert len(reply["reason"]) == 500


def test_what_comes_before_a_request_is_dropped_and_ids_cannot_be_guessed() -> None:
    channel = Scripted(OK, OK)
    session = Session(channel, "a#1")
    session.measure(dict(REQUEST), dict)
    forged = [protocol.encode({"id": number, "reply": "result", **OK, "seconds": [1e-6]}) for number in (1, 2, 3, 4, 5)]
    channel.lines.extend(forged)
    assert session.measure(dict(REQUEST), dict)["seconds"] == [0.5]
    assert channel.discarded == len(forged)
    ids = [request["id"] for request in channel.requests]
    assert len(set(ids)) == len(ids) == 3
    assert all(len(number) == 32 for number in ids)


@pytest.mark.parametrize("missing", sorted(VERIFIED))
def test_a_good_result_without_what_its_verification_found_is_a_crash(missing: str) -> None:
    session, reply = measured({name: value for name, value in OK.items() if name != missing}, turns=False)
    assert (reply["status"], reply["class"]) == ("failed", "crash")
    assert reply["reason"] == f"the harness server sent that a test is good, without {missing}"
    assert not session.alive


def test_a_hello_of_the_wrong_shape_is_a_failed_reply_and_leaves_no_facts() -> None:
    for hello in ({}, {"status": "ok", "facts": 3}, {"status": "ok", "bytes": "x"}, {"reply": "turn", "stage": "turn"}):
        session = Session(Scripted(hello), "a#1")
        reply = session.hello("numpy", 1, "cpu", 5.0)
        assert (reply["status"], reply["class"]) == ("failed", "crash")
        assert (session.alive, session.size) == (False, 0)
        assert session.facts == {"server": "a#1", "packages": {}}


def test_a_server_does_not_name_itself() -> None:
    facts = {"version": "1", "server": "b#7", "gpu_affinity": "near", "opened_by_import": "/dev/x"}
    session = Session(Scripted({"status": "ok", "facts": facts, "python": "3.6.1"}), "a#1")
    session.hello("numpy", 1, "cpu", 5.0)
    assert session.facts == {"version": "1", "server": "a#1", "packages": {}, "python": "3.6.1"}


def test_cold_cells_that_were_not_asked_for_are_left_out() -> None:
    session = Session(Scripted({"status": "ok", "cold": {"0": 3, "5": 4}}), "a#1")
    assert session.cold("/cache", [{"key": "k"}]) == {"0": 3.0}
    assert Session(Scripted({"status": "ok", "cold": {"0": "x"}}), "a#1").cold("/cache", [{}]) == {}
