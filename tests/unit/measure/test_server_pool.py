"""Rounds over live servers: every cell in turn, each end its class, and nothing left behind."""

import itertools
from collections import Counter, deque
from collections.abc import Generator
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.model import Outcome
from runner.measure.server_pool import HELLO_SECONDS, admit
from runner.measure.session import GRACE, SILENCE
from tests.support.fake_servers import CASE, GB, FakeBackend, block, cells, outcomes

FOUR = cells("a/x", "a/y", "b/x", "c/x")


def short(outcome: Outcome) -> str:
    return f"{outcome.cell.environment}/{outcome.cell.implementation}"


def orders(found: list[Outcome]) -> list[list[str]]:
    """Return the cells of each round in the order measured."""
    return [[short(one) for one in turn] for _, turn in itertools.groupby(found, key=lambda one: one.round)]


def ends(found: list[Outcome], name: str) -> list[str]:
    """Return how one cell ended, round by round."""
    return [one.reply.get("class") or one.reply["status"] for one in found if short(one) == name]


def all_closed(backend: FakeBackend) -> bool:
    return bool(backend.opened) and all(server.closed for server in backend.opened)


def test_every_cell_is_measured_once_a_round() -> None:
    found = list(outcomes(FakeBackend(), block(*FOUR), rounds=5))
    assert [one.round for one in found] == [number for number in range(1, 6) for _ in FOUR]
    assert Counter(one.cell for one in found) == dict.fromkeys(FOUR, 5)
    assert all(sorted(turn) == ["a/x", "a/y", "b/x", "c/x"] for turn in orders(found))
    assert all(set(one.reply["seconds"]) == {0.5} for one in found)


def test_the_order_is_random_and_comes_again_with_the_seed() -> None:
    first = orders(list(outcomes(FakeBackend(), block(*FOUR), rounds=8, seed=1)))
    assert first == orders(list(outcomes(FakeBackend(), block(*FOUR), rounds=8, seed=1)))
    assert first != orders(list(outcomes(FakeBackend(), block(*FOUR), rounds=8, seed=2)))
    assert len({tuple(turn) for turn in first}) > 4


def test_all_servers_of_a_block_are_alive_whenever_a_cell_is_measured() -> None:
    backend = FakeBackend()
    list(outcomes(backend, block(*FOUR), restart=1))
    assert backend.alive == [{"a", "b", "c"}] * 12


def test_servers_are_replaced_after_their_rounds_and_named_in_order() -> None:
    backend = FakeBackend()
    found = list(outcomes(backend, block(*FOUR), rounds=5, restart=2))
    servers = {(one.cell.environment, one.round): one.facts["server"] for one in found}
    for name in "abc":
        assert [servers[name, number] for number in range(1, 6)] == [f"{name}#{k}" for k in (1, 1, 2, 2, 3)]
    assert len(backend.opened) == 9
    assert all_closed(backend)


def test_an_outcome_carries_the_facts_of_its_server() -> None:
    (found,) = outcomes(FakeBackend(), block(*cells("a/x")), rounds=1)
    own = {"python": "3.6.1", "import_seconds": 0.5, "server": "a#1", "packages": {}}
    assert found.facts == {"version": "1.0", **own}
    assert found.ready.environment == "a"


def test_what_a_server_is_asked() -> None:
    for limits_memory, memory in ((False, 8 * GB), (True, None)):
        backend = FakeBackend(limits_memory=limits_memory)
        list(outcomes(backend, block(*cells("a/x")), rounds=2, seconds=0.5, timeout=9.0, threads=3, memory=8 * GB))
        (server,) = backend.opened
        asked = [request for request in server.requests if request["op"] != "go"]
        assert [request["op"] for request in asked] == ["hello", "reference", "measure", "measure"]
        assert [request["id"] for request in asked] == [1, 2, 3, 4]
        assert [request["id"] for request in server.requests if request["op"] == "go"] == [3, 3, 4, 4]
        hello, reference, first, second = asked
        assert (hello["framework"], hello["threads"], hello["device"]) == ("torch", 3, "cpu")
        assert (reference["loss"], reference["digest"], reference["key"]) == ([1.0], "d", first["key"])
        shared = {"op": "measure", "case": CASE, "device": "cpu", "seconds": 0.5, "timeout": 9.0, "memory": memory}
        own = {"framework": "torch", "implementation": "x", "phase": "train", "precision": "fp32", "cache": "/cache/a"}
        fresh = {"proven": False, "turns": True}
        assert {name: first[name] for name in first if name not in {"id", "key"}} == shared | own | fresh
        assert {**second, "id": 3} == {**first, "proven": True}


def test_an_import_may_be_silent_for_longer_than_a_measurement() -> None:
    backend = FakeBackend()
    list(outcomes(backend, block(*cells("a/x")), rounds=1))
    hello, *others = [patience for patience in backend.opened[0].patience if patience > 0]
    assert hello == pytest.approx(HELLO_SECONDS + GRACE, abs=5)
    assert others
    assert all(patience <= SILENCE for patience in others[1:])


@pytest.mark.parametrize("kind", ["wrong-result", "timeout", "nan", "import"])
def test_a_failure_that_would_come_again_is_not_asked_for_again(kind: str) -> None:
    backend = FakeBackend()
    backend.does("a/x", kind)
    found = list(outcomes(backend, block(*FOUR)))
    assert ends(found, "a/x") == [kind]
    assert [ends(found, name) for name in ("a/y", "b/x", "c/x")] == [["ok"] * 3] * 3


def test_a_crash_is_asked_for_again() -> None:
    backend = FakeBackend()
    backend.does("a/x", "crash")
    found = list(outcomes(backend, block(*FOUR)))
    assert ends(found, "a/x") == ["crash", "ok", "ok"]
    assert len(backend.opened) == 3


@pytest.mark.parametrize(
    ("deed", "kind", "reason", "again"),
    [
        ("dies", "crash", "killed by signal SIGSEGV", 3),
        ("is-gone", "crash", "killed by signal SIGSEGV", 3),
        ("babbles", "crash", "the harness server wrote something that is not its protocol", 3),
        ("hangs", "timeout", "the harness server said nothing for 60 s", 1),
    ],
)
def test_a_server_that_is_lost_is_replaced_and_the_others_go_on(deed: str, kind: str, reason: str, again: int) -> None:
    backend = FakeBackend()
    backend.does("a/x", deed)
    found = list(outcomes(backend, block(*FOUR)))
    lost = next(one for one in found if short(one) == "a/x")
    assert lost.reply == {"status": "failed", "class": kind, "reason": reason, "log": "last words of a"}
    assert lost.facts["server"] == "a#1"
    assert len(ends(found, "a/x")) == again
    assert [ends(found, name) for name in ("a/y", "b/x", "c/x")] == [["ok"] * 3] * 3
    assert Counter(server.environment for server in backend.opened) == {"a": 2, "b": 1, "c": 1}
    assert {one.facts["server"] for one in found if one.cell.environment == "a" and one.round > 1} == {"a#2"}
    assert all_closed(backend)


def test_an_environment_that_cannot_be_imported_leaves_one_record_a_cell() -> None:
    backend = FakeBackend()
    backend.hellos["a"] = deque(["import"])
    found = list(outcomes(backend, block(*FOUR)))
    assert (ends(found, "a/x"), ends(found, "a/y"), ends(found, "b/x")) == (["import"], ["import"], ["ok"] * 3)
    assert Counter(server.environment for server in backend.opened)["a"] == 1
    assert {one.reply["reason"] for one in found if one.cell.environment == "a"} == {"it was import"}


def test_a_successor_that_cannot_be_imported_ends_its_environment_alone() -> None:
    backend = FakeBackend()
    backend.hellos["a"] = deque(["ok", "import"])
    found = list(outcomes(backend, block(*FOUR), rounds=4, restart=2))
    assert ends(found, "a/x") == ["ok", "ok", "import"]
    assert ends(found, "b/x") == ["ok"] * 4


def test_an_environment_that_was_not_made_is_left_out() -> None:
    backend = FakeBackend()
    found = list(outcomes(backend, block(*FOUR), block(*cells("b/x", case="unknown")), missing="b"))
    assert {one.cell.environment for one in found} == {"a", "c"}
    assert "b" not in {server.environment for server in backend.opened}


def test_a_server_is_told_each_reference_once_and_serves_several_blocks() -> None:
    backend = FakeBackend()
    list(outcomes(backend, block(*cells("a/x", "a/y")), block(*cells("a/x", case="large")), restart=1))
    assert len(backend.opened) == 3
    for server in backend.opened:
        assert Counter(request["op"] for request in server.requests) == {
            "hello": 1,
            "reference": 2,
            "measure": 3,
            "go": 6,
        }


def test_environments_that_do_not_fit_side_by_side_are_measured_in_groups_with_the_base() -> None:
    backend = FakeBackend()
    backend.sizes = {"a": GB, "b": 2 * GB, "c": 2 * GB}
    found = list(outcomes(backend, block(*FOUR), memory=7 * GB, rounds=2))
    assert {frozenset(alive) for alive in backend.alive} == {frozenset("ab"), frozenset("ac")}
    rounds = {name: sorted({one.round for one in found if one.cell.environment == name}) for name in "abc"}
    assert rounds == {"a": [1, 2, 3, 4], "b": [1, 2], "c": [3, 4]}
    assert all_closed(backend)


def test_every_server_is_closed_when_the_reader_stops_early() -> None:
    backend = FakeBackend()
    running = cast("Generator[Outcome]", outcomes(backend, block(*FOUR)))
    next(running)
    assert not any(server.closed for server in backend.opened)
    running.close()
    assert all_closed(backend)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError])
def test_every_server_is_closed_when_the_work_is_interrupted(kind: type[BaseException]) -> None:
    class Ear(list[str]):
        def append(self, text: str) -> None:
            super().append(text)
            if text.startswith("round 2"):
                raise kind

    backend = FakeBackend()
    with pytest.raises(kind):
        list(outcomes(backend, block(*FOUR), said=Ear()))
    assert len(backend.opened) == 3
    assert all_closed(backend)


def test_a_reference_that_cannot_be_computed_fails_its_cells_and_no_others() -> None:
    backend = FakeBackend()
    found = list(outcomes(backend, block(*cells("a/x", case="unknown")), block(*FOUR), rounds=2))
    (failed,) = [one for one in found if one.cell.case == "unknown"]
    assert failed.reply["class"] == "crash"
    assert "could not be computed" in failed.reply["reason"]
    assert [one.reply["status"] for one in found if one is not failed] == ["ok"] * 8
    assert all_closed(backend)


def test_a_server_that_cannot_be_ended_does_not_keep_the_others() -> None:
    backend = FakeBackend()
    backend.stuck = "a"
    with pytest.raises(OSError, match="cannot be ended"):
        list(outcomes(backend, block(*FOUR), rounds=1))
    assert all_closed(backend)


Sizes = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 10), max_size=8)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True), Sizes, st.integers(0, 20))
def test_groups_hold_the_base_and_every_other_environment_once(
    names: list[str], sizes: dict[str, int], room: int
) -> None:
    groups = admit(names, sizes, room)
    assert all(group[0] == names[0] for group in groups)
    assert sorted(name for group in groups for name in group[1:]) == sorted(names[1:])
    for group in groups:
        assert len(group) <= 2 or sum(sizes.get(name, 0) for name in group) <= room
        assert list(group) == sorted(group, key=names.index)
    if sum(sizes.get(name, 0) for name in names) <= room:
        assert groups == (tuple(names),)
