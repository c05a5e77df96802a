"""What a server sees of a child that stops between its turns."""

import os
import time
from typing import Any

import pytest

from runner.harness import procfs, watched
from runner.harness.watched import CLOCK, COMPUTES, LEFT_CPUS, TURNS, Watch, seconds_of_turns

ANSWER: dict[str, Any] = {"seconds": [0.002] * 10, "batch": 1, "turns": [2, 4, 4], "leads": [0.003, 0.003, 0.003]}


def watch(*turns: float) -> Watch:
    """Return what has seen some turns of some seconds."""
    seen = Watch()
    seen.turns = list(turns)
    return seen


def test_the_seconds_of_a_turn_are_those_of_its_calls() -> None:
    assert seconds_of_turns(ANSWER) == pytest.approx([0.007, 0.011, 0.011])
    assert seconds_of_turns({**ANSWER, "leads": [0.001, 0.002] * 3}) == pytest.approx([0.007, 0.011, 0.011])
    assert seconds_of_turns({**ANSWER, "leads": [], "batch": 10}) == pytest.approx([0.04, 0.08, 0.08])


def test_an_honest_child_is_not_suspected() -> None:
    for seen in (watch(0.008, 0.012, 0.060), watch(0.500, 0.012, 0.012)):  # a busy machine, for one turn
        assert (seen.misconduct(ANSWER), seen.remarks(ANSWER)) == ("", [])
    alone = Watch()
    assert (alone.misconduct({"seconds": [0.1]}), alone.remarks({"seconds": [0.1]})) == ("", [])


@pytest.mark.parametrize("turns", [(0.030, 0.050, 0.050), (0.001, 0.002, 0.002)])
def test_another_clock_than_that_of_the_server_is_remarked(turns: tuple[float, ...]) -> None:
    assert watch(*turns).misconduct(ANSWER) == ""
    assert watch(*turns).remarks(ANSWER) == [CLOCK.format(0.007, turns[0])]


@pytest.mark.parametrize(
    ("turns", "changes", "reason"),
    [
        ((0.008, 0.012), {}, TURNS.format(3, 2)),
        ((0.008, 0.012, 0.012), {"turns": "x"}, TURNS.format(0, 3)),
        ((0.008, 0.012, 0.012), {"seconds": [0.001]}, TURNS.format(0, 3)),
        ((0.008, 0.012, 0.012), {"batch": None}, TURNS.format(0, 3)),
    ],
)
def test_turns_that_were_not_given_are_seen(turns: tuple[float, ...], changes: dict[str, Any], reason: str) -> None:
    assert watch(*turns).misconduct({**ANSWER, **changes}) == reason


def test_short_turns_on_a_busy_machine_are_not_suspected() -> None:
    short = {"turns": [2, 2, 2], "seconds": [0.0004] * 6, "batch": 1, "leads": []}
    assert watch(0.0045, 0.005, 0.0045).remarks(short) == []
    assert watch(0.009, 0.010, 0.009).remarks(short) == [CLOCK.format(0.0008, 0.009)]


def test_processes_that_compute_while_the_child_waits_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    now, busy = [0.0], [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(watched, "cpu_seconds", lambda _pids: busy[0])
    monkeypatch.setattr(procfs, "descendants", lambda _pid, _kept: [7])
    for seconds, computed, remarks in ((1.0, 0.05, []), (1.0, 0.8, [COMPUTES.format(0.8, 1.0)])):
        seen = Watch()
        seen.stops(os.getpid())
        now[0] += seconds
        busy[0] += computed
        seen.goes_on("turn")
        began: Any = seen.began
        assert (began, seen.remarks({})) == (now[0], remarks)


def test_a_thread_on_another_cpu_is_seen() -> None:
    seen = Watch()
    seen.look(os.getpid())
    assert not seen.has_left
    seen.cpus = set()
    seen.look(os.getpid())
    assert seen.remarks(ANSWER) == [LEFT_CPUS]


def test_a_child_that_has_ended_has_left_nothing() -> None:
    seen = Watch()
    seen.look(2**22 + 1)
    assert not seen.has_left
