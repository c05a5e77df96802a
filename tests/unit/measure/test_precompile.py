"""Compilers at work before the first round."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.core.model import Past
from runner.harness import compile_cache
from runner.harness.adapters.base import Implementation
from tests.support.fake_servers import GB, FakeBackend, block, cells, outcomes

CELLS = cells("a/x", "a/y", "b/x", "c/z")


def asked(backend: FakeBackend) -> list[tuple[str, str, bool]]:
    """Return environment, implementation and whether it is ahead of each measuring request, by server."""
    found = []
    for server in backend.opened:
        requests = [request for request in server.requests if request["op"] == "measure"]
        found += [(server.environment, request["implementation"], request.get("ahead", False)) for request in requests]
    return found


@pytest.fixture
def backend() -> FakeBackend:
    found = FakeBackend()
    found.cold = {"x": 60.0}
    return found


def test_what_compiles_for_long_is_built_once_before_the_first_round(backend: FakeBackend) -> None:
    found = list(outcomes(backend, block(*CELLS), side_by_side=2, seconds=2.0, rounds=1))
    assert len(found) == len(CELLS)  # what was measured ahead is no outcome
    early = [one for one in asked(backend) if one[2]]
    assert sorted(early) == [("a", "x", True), ("b", "x", True)]
    for server in backend.opened:
        kinds = [request.get("ahead", False) for request in server.requests if request["op"] == "measure"]
        assert kinds == sorted(kinds, reverse=True)  # before the round
    measured = [(cell.environment, cell.implementation, False) for cell in CELLS]
    assert sorted(asked(backend)) == sorted(measured + early)


def test_environments_compile_side_by_side(backend: FakeBackend) -> None:
    backend.compiling = threading.Barrier(2)
    assert len(list(outcomes(backend, block(*CELLS), side_by_side=2, rounds=1))) == len(CELLS)


def test_memory_bounds_how_many_compile_at_a_time(backend: FakeBackend) -> None:
    backend.compiling = threading.Barrier(2)
    large = replace(block(*CELLS), memory_bytes=3 * GB)
    with pytest.raises(threading.BrokenBarrierError):
        list(outcomes(backend, large, side_by_side=2, rounds=1, memory=10 * GB))


def test_a_twin_has_the_cache_of_its_other_half(backend: FakeBackend) -> None:
    list(outcomes(backend, block(*cells("a/x", "a@twin/x")), side_by_side=2, rounds=1))
    assert [name for name, _, early in asked(backend) if early] == ["a"]


def test_a_server_that_is_given_up_over_it_is_ended(backend: FakeBackend) -> None:
    backend.does("a/x", "hangs")
    closed: list[list[int]] = []

    def canary() -> float:
        closed.append([server.closed for server in backend.opened if server.environment == "a"])
        return 0.5

    list(outcomes(backend, block(*CELLS), side_by_side=2, rounds=1, canary=canary))
    assert closed == [[1]]  # before anything of the round was timed


@pytest.mark.parametrize("deed", ["crash", "dies", "wrong-result", "oom"])
def test_what_fails_ahead_has_its_round_all_the_same(backend: FakeBackend, deed: str) -> None:
    backend.does("a/x", deed)
    found = list(outcomes(backend, block(*CELLS), side_by_side=2, rounds=1))
    assert {one.reply["status"] for one in found} == {"ok"}
    assert len(found) == len(CELLS)


def test_a_case_without_a_reference_is_left_to_its_round(backend: FakeBackend) -> None:
    unknown = block(*cells("a/x", "b/x", case="unknown"))
    found = list(outcomes(backend, unknown, block(*CELLS), side_by_side=2, rounds=1))
    assert sorted(one.reply["status"] for one in found) == ["failed"] * 2 + ["ok"] * 4


def test_nothing_is_compiled_ahead_where_servers_start_alone_or_a_run_goes_on(backend: FakeBackend) -> None:
    list(outcomes(backend, block(*CELLS), rounds=1))
    past = Past(finished=frozenset({("rnn-step/tiny", 1)}), groups={"cpu": (("a", "b", "c"),)})
    list(outcomes(backend, block(*CELLS), side_by_side=2, rounds=2, past=past))
    assert not any(early for _, _, early in asked(backend))


class Slow(Implementation):
    """Compiles for a minute."""

    slug = "slow"
    compile_seconds = (60.0, 3.0)


class Quick(Implementation):
    """Compiles at once."""

    slug = "quick"


def request(slug: str, **changes: Any) -> dict[str, Any]:
    return {"implementation": slug, "key": "k", "phase": "train", "precision": "fp32", **changes}


def test_a_cell_is_cold_until_it_was_compiled_and_each_of_its_kind_alone(tmp_path: Path) -> None:
    classes = {"slow": Slow, "quick": Quick}

    def cold(*asked: dict[str, Any], threads: int = 2) -> dict[str, float]:
        found: dict[str, float] = compile_cache.cold_cells(classes, str(tmp_path), threads, list(asked))
        return found

    every = (
        request("slow"),
        request("quick"),
        request("unknown"),
        request("slow", phase="compile"),
        request("slow", phase="train+published"),
    )
    assert cold(*every) == {"0": 60.0}
    for chosen in (Slow, Quick):
        compile_cache.mark_compiled(chosen, request(chosen.slug), str(tmp_path), 2)
    assert cold(*every) == {}
    assert len(list((tmp_path / "compiled").iterdir())) == 1  # nothing is remembered of what compiles at once
    others = (request("slow", key="other"), request("slow", phase="forward"), request("slow", precision="tf32"))
    assert cold(*others) == {"0": 60.0, "1": 60.0, "2": 60.0}
    assert cold(request("slow"), threads=1) == {"0": 60.0}  # flags of the compiler change with the threads


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "compiled").write_text("in the way")
    compile_cache.mark_compiled(Slow, request("slow"), str(tmp_path), 1)
    assert compile_cache.cold_cells({"slow": Slow}, str(tmp_path), 1, [request("slow")]) == {"0": 60.0}


def test_later_cases_are_built_with_the_next_as_far_as_that_is_no_long_wait(backend: FakeBackend) -> None:
    backend.cold = {"x": 250.0}
    blocks = [block(*cells("a/x", case=name)) for name in ("one", "two", "three", "four")]
    list(outcomes(backend, *blocks, side_by_side=2, rounds=1, seconds=2.0))
    (server,) = backend.opened
    order = [request.get("ahead", False) for request in server.requests if request["op"] == "measure"]
    assert order == [True, True, False, False, True, True, False, False]


def test_what_was_tried_once_is_not_tried_before_the_next_case(backend: FakeBackend) -> None:
    backend.does("a/x", "crash", "crash")
    blocks = [block(*cells("a/x", case=name)) for name in ("one", "two")]
    list(outcomes(backend, *blocks, side_by_side=2, rounds=1, seconds=2.0))
    assert [early for _, _, early in asked(backend)] == [True, True, False, False]
