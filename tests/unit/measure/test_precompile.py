"""Compiling before the first round."""

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


def measure_requests(backend: FakeBackend) -> list[tuple[str, str, bool]]:
    """Return environment, implementation and whether it only compiles, of each measuring request, by server."""
    rows = []
    for server in backend.opened:
        rows += [
            (server.environment, request["implementation"], request.get("precompile", False))
            for request in server.requests
            if request["op"] == "measure"
        ]
    return rows


@pytest.fixture
def backend() -> FakeBackend:
    fake = FakeBackend()
    fake.cold = {"x": 60.0}
    return fake


def test_slow_cells_compile_once_before_the_first_round(backend: FakeBackend) -> None:
    measured = list(outcomes(backend, block(*CELLS), side_by_side=2, seconds=2.0, rounds=1))
    assert len(measured) == len(CELLS)  # compiling gives no outcome
    early = [row for row in measure_requests(backend) if row[2]]
    assert sorted(early) == [("a", "x", True), ("b", "x", True)]
    for server in backend.opened:
        kinds = [request.get("precompile", False) for request in server.requests if request["op"] == "measure"]
        assert kinds == sorted(kinds, reverse=True)  # before the round
    in_round = [(cell.environment, cell.implementation, False) for cell in CELLS]
    assert sorted(measure_requests(backend)) == sorted(in_round + early)


def test_environments_compile_in_parallel(backend: FakeBackend) -> None:
    backend.compiling = threading.Barrier(2)
    assert len(list(outcomes(backend, block(*CELLS), side_by_side=2, rounds=1))) == len(CELLS)


def test_memory_limits_how_many_compile_in_parallel(backend: FakeBackend) -> None:
    backend.compiling = threading.Barrier(2)
    large = replace(block(*CELLS), memory_bytes=3 * GB)
    with pytest.raises(threading.BrokenBarrierError):
        list(outcomes(backend, large, side_by_side=2, rounds=1, memory=10 * GB))


def test_a_twin_is_not_compiled_again(backend: FakeBackend) -> None:
    list(outcomes(backend, block(*cells("a/x", "a@twin/x")), side_by_side=2, rounds=1))
    assert [name for name, _, early in measure_requests(backend) if early] == ["a"]


def test_a_server_that_hangs_while_compiling_is_ended(backend: FakeBackend) -> None:
    backend.does("a/x", "hangs")
    closed: list[list[int]] = []

    def canary() -> float:
        closed.append([server.closed for server in backend.opened if server.environment == "a"])
        return 0.5

    list(outcomes(backend, block(*CELLS), side_by_side=2, rounds=1, canary=canary))
    assert closed == [[1]]  # before anything of the round was timed


@pytest.mark.parametrize("deed", ["crash", "dies", "wrong-result", "oom"])
def test_a_cell_that_fails_to_compile_is_measured_all_the_same(backend: FakeBackend, deed: str) -> None:
    backend.does("a/x", deed)
    measured = list(outcomes(backend, block(*CELLS), side_by_side=2, rounds=1))
    assert [outcome.reply["status"] for outcome in measured] == ["ok"] * len(CELLS)


def test_a_case_without_a_reference_is_not_compiled(backend: FakeBackend) -> None:
    unknown = block(*cells("a/x", "b/x", case="unknown"))
    measured = list(outcomes(backend, unknown, block(*CELLS), side_by_side=2, rounds=1))
    assert sorted(outcome.reply["status"] for outcome in measured) == ["failed"] * 2 + ["ok"] * 4


def test_nothing_compiles_with_one_core_or_in_a_resumed_run(backend: FakeBackend) -> None:
    list(outcomes(backend, block(*CELLS), rounds=1))
    past = Past(finished=frozenset({("rnn-step/tiny", 1)}), groups={"cpu": (("a", "b", "c"),)})
    list(outcomes(backend, block(*CELLS), side_by_side=2, rounds=2, past=past))
    assert not any(early for _, _, early in measure_requests(backend))


class Slow(Implementation):
    """Compiles for a minute."""

    slug = "slow"
    compile_seconds = (60.0, 3.0)


class Quick(Implementation):
    """Compiles at once."""

    slug = "quick"


def request(slug: str, **changes: Any) -> dict[str, Any]:
    return {"implementation": slug, "key": "k", "phase": "train", "precision": "fp32", **changes}


def test_a_cell_is_cold_until_a_cell_of_its_kind_was_compiled(tmp_path: Path) -> None:
    classes = {"slow": Slow, "quick": Quick}

    def cold(*requests: dict[str, Any], threads: int = 2) -> dict[str, float]:
        seconds: dict[str, float] = compile_cache.cold_cells(classes, str(tmp_path), threads, list(requests))
        return seconds

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


def test_a_cache_that_cannot_be_written_keeps_cells_cold(tmp_path: Path) -> None:
    (tmp_path / "compiled").write_text("in the way")
    compile_cache.mark_compiled(Slow, request("slow"), str(tmp_path), 1)
    assert compile_cache.cold_cells({"slow": Slow}, str(tmp_path), 1, [request("slow")]) == {"0": 60.0}


def test_later_cases_compile_with_the_next_up_to_the_limit(backend: FakeBackend) -> None:
    backend.cold = {"x": 250.0}
    blocks = [block(*cells("a/x", case=name)) for name in ("one", "two", "three", "four")]
    list(outcomes(backend, *blocks, side_by_side=2, rounds=1, seconds=2.0))
    (server,) = backend.opened
    order = [request.get("precompile", False) for request in server.requests if request["op"] == "measure"]
    assert order == [True, True, False, False, True, True, False, False]


def test_a_failed_compile_is_not_tried_before_the_next_case(backend: FakeBackend) -> None:
    backend.does("a/x", "crash", "crash")
    blocks = [block(*cells("a/x", case=name)) for name in ("one", "two")]
    list(outcomes(backend, *blocks, side_by_side=2, rounds=1, seconds=2.0))
    assert [early for _, _, early in measure_requests(backend)] == [True, True, False, False]
