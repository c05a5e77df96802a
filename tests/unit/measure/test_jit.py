"""Environments whose GPU code the driver compiles: a long limit, and one priming child before the first round."""

from typing import Any

import pytest

from runner.core.model import RoundTimes
from runner.measure.server_start import HELLO_SECONDS, JIT_SECONDS, StartTimes
from runner.measure.session import GRACE
from tests.support.fake_servers import FakeBackend, block, cells, events, outcomes

CELLS = cells("old/vendor", "old/x", "new/x")
LARGE = cells("old/x", "new/x", case="a-large-case")


def primed(backend: FakeBackend) -> list[tuple[str, str, float]]:
    """Return environment, implementation and time-out of the requests that only compile, in order."""
    return [
        (server.environment, request["implementation"], request["timeout"])
        for server in backend.opened
        for request in server.requests
        if request.get("precompile")
    ]


def hellos(backend: FakeBackend) -> dict[str, set[float]]:
    """Return environment -> the time-outs of its imports."""
    by_environment: dict[str, set[float]] = {}
    for server in backend.opened:
        by_environment.setdefault(server.environment, set()).add(server.requests[0]["timeout"])
    return by_environment


def test_one_child_compiles_before_the_first_round_and_is_no_result() -> None:
    backend = FakeBackend()
    measured = list(outcomes(backend, block(*LARGE), block(*CELLS), rounds=2, restart=1, jit={"old"}))
    assert primed(backend) == [("old", "x", JIT_SECONDS)]  # the smallest case, without cuDNN
    (request,) = [request for request in backend.measured() if request.get("precompile")]
    assert request == backend.measured()[0]  # before anything is timed
    assert len(measured) == 2 * (len(CELLS) + len(LARGE))


def test_only_the_first_import_that_may_compile_has_a_long_limit() -> None:
    backend = FakeBackend()
    list(outcomes(backend, block(*CELLS), jit={"old"}))
    assert hellos(backend) == {"old": {JIT_SECONDS}, "new": {HELLO_SECONDS}}
    waits = {server.environment: max(server.patience) for server in backend.opened}
    assert waits["old"] == pytest.approx(JIT_SECONDS + GRACE, abs=5)
    assert waits["new"] < JIT_SECONDS


def test_first_contexts_that_compile_are_no_part_of_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StartTimes, "take_import_share", lambda _: 0.0)
    case, times = block(*CELLS), list[RoundTimes]()
    for jit in (set[str](), {"old"}):
        run_events = events(FakeBackend(), case, rounds=2, restart=1, jit=jit)
        times += [event for event in run_events if isinstance(event, RoundTimes)]
    without, _, first, second = (each.seconds["start"] for each in times)
    assert without > 0.0
    assert first == 0.0
    assert second > 0.0


def test_nothing_compiles_early_without_jit() -> None:
    backend = FakeBackend()
    list(outcomes(backend, block(*CELLS)))
    assert primed(backend) == []
    assert all("driver_cache" not in request for request in backend.measured())


def test_twins_share_the_cache_of_their_environment() -> None:
    backend = FakeBackend()
    list(outcomes(backend, block(*cells("old/x", "old@twin/x")), rounds=1, jit={"old"}))
    assert [name for name, *_ in primed(backend)] == ["old"]
    assert hellos(backend) == {"old": {JIT_SECONDS}, "old@twin": {JIT_SECONDS}}
    assert {request["driver_cache"] for request in backend.measured()} == {"/cache/old", "/cache/old@twin"}


@pytest.mark.parametrize("deed", ["crash", "timeout", "dies"])
def test_an_environment_that_does_not_compile_is_measured_all_the_same(deed: str) -> None:
    backend, lines = FakeBackend(), list[str]()
    backend.does("old/x", deed)
    measured = list(outcomes(backend, block(*CELLS), rounds=1, jit={"old"}, lines=lines))
    assert [outcome.reply["status"] for outcome in measured] == ["ok"] * len(CELLS)
    assert [line for line in lines if line.startswith("old: compiling its GPU code failed: ")]


def facts(backend: FakeBackend, lines: list[str]) -> dict[str, dict[str, Any]]:
    """Return environment -> the facts of its servers."""
    measured = outcomes(backend, block(*CELLS), rounds=2, restart=1, lines=lines)
    return {outcome.cell.environment: dict(outcome.facts) for outcome in measured if outcome.reply["status"] == "ok"}


def test_children_import_the_framework_if_its_import_opens_a_gpu() -> None:
    backend, lines = FakeBackend(), list[str]()
    backend.opening = {"old"}
    by_environment = facts(backend, lines)
    assert by_environment["old"]["opened_by_import"] == "/dev/x"
    assert "opened_by_import" not in by_environment["new"]
    assert lines.count("old: it opens /dev/x; each child imports the framework instead") == 1
    modes = [server.requests[0]["load_in_child"] for server in backend.opened if server.environment == "old"]
    assert modes == [False, True, True]  # learnt once in a run
    assert all(server.closed for server in backend.opened)
