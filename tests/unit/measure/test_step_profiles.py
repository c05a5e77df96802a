"""Profiles are taken after the rounds, one environment after the other, and what fails is a sentence."""

import contextlib
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.core.errors import EngineError
from runner.core.model import Limits, Measurement, Plan, Provisioned
from runner.measure import replies
from runner.measure.server_pool import ServerPool
from runner.measure.step_profiles import can_profile, take_profiles
from tests.support.fake_servers import GB, FakeBackend, Known, block, cells

CELLS = cells("a/x", "b/x", "a/y")


def taken(backend: FakeBackend, folder: Path, **options: Any) -> dict[str, str]:
    """Return the cell -> why it has no profile, empty if it has one."""
    plan = Plan(
        device="cpu",
        backend="fake",
        measurement=Measurement(),
        cells=(),
        blocks=(block(*CELLS),),
        frameworks={"a": "torch", "b": "torch"},
    )
    ready = {
        name: Provisioned(environment=name, framework="torch", handle="h", digest="d", seconds=0.0, cached=True)
        for name in plan.frameworks
    }
    with contextlib.closing(ServerPool(plan, ready, backend, Limits(memory=100 * GB), lambda _: None)) as servers:
        events = list(take_profiles(plan, servers, Known(folder, 1), CELLS, **options))
    return {f"{each.cell.environment}/{each.cell.implementation}": each.profile["reason"] for each in events}


def requests(backend: FakeBackend) -> list[dict[str, Any]]:
    """Return what the servers were asked after their start, in order."""
    return [each for server in backend.opened for each in server.requests if each["op"] not in ("hello", "reference")]


def test_environments_are_profiled_one_after_the_other(tmp_path: Path) -> None:
    backend = FakeBackend()
    assert taken(backend, tmp_path) == {"a/x": "", "a/y": "", "b/x": ""}
    assert [server.environment for server in backend.opened] == ["a", "b"]
    assert backend.alive == [{"a"}, {"a"}, {"b"}]
    assert {(each["op"], each["already_verified"], each.get("turns")) for each in requests(backend)} == {
        ("profile", True, False)
    }


def test_a_profile_that_fails_costs_no_other(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.does("a/x", "timeout")
    backend.does("b/x", "dies")
    reasons = taken(backend, tmp_path)
    assert reasons["a/y"] == ""
    assert reasons["a/x"] == "timeout: it was timeout"
    assert reasons["b/x"].startswith("crash: ")


def test_a_server_that_cannot_start_is_the_reason(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.hellos["a"] = deque(["import"])
    assert taken(backend, tmp_path) == {"a/x": "import: it was import", "a/y": "import: it was import", "b/x": ""}


def test_the_budget_limits_profiles_too(tmp_path: Path) -> None:
    backend, remaining = FakeBackend(), iter([30.0, 0.0, -1.0])
    late = "the budget was spent before it was taken"
    assert taken(backend, tmp_path, remaining=lambda: next(remaining)) == {"a/x": "", "a/y": late, "b/x": late}
    assert [each["timeout"] for each in requests(backend)] == [30.0]


def test_a_lost_engine_ends_the_run(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.does("a/x", "loses-its-engine")
    with pytest.raises(EngineError):
        taken(backend, tmp_path)


def test_only_steps_are_profiled() -> None:
    (cell,) = cells("a/x")
    phases = ("forward", "train", "gradient", "backward-inputs", "compile", "compile-warm", "train+published")
    assert [can_profile(replace(cell, phase=phase)) for phase in phases] == [True] * 4 + [False] * 3


ROW = {"name": "mm\x1b[2J", "calls": 1.5, "host_seconds": 0.1, "device_seconds": 0.0, "total_seconds": 0.2}
PROFILE: dict[str, Any] = {"reason": "", "profiler": "p", "steps": 3, "rows": [ROW], "step_seconds": 1.0}


def reply(**changes: Any) -> dict[str, Any]:
    """Return a reply with a profile."""
    return {"reply": "result", "status": "ok", "profile": {**PROFILE, **changes}}


def test_a_sound_profile_has_printable_names() -> None:
    assert replies.check(reply(), "profile")["profile"]["rows"][0]["name"] == "mm\\x1b[2J"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rows": []}, "either rows or a reason"),
        ({"reason": "no profiler"}, "either rows or a reason"),
        ({"rows": [ROW] * 201}, "profile.rows = ["),
        ({"rows": [{**ROW, "calls": float("nan")}]}, "profile.rows.0.calls = nan"),
        ({"rows": [{**ROW, "host_seconds": -1.0}]}, "profile.rows.0.host_seconds = -1.0"),
        ({"rows": [{"name": "mm"}]}, "without profile.rows.0.calls"),
        ({"steps": "3"}, "profile.steps = '3'"),
    ],
)
def test_a_profile_of_another_shape_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011  its text is looked at below
        replies.check(reply(**changes), "profile")
    assert sentence in str(error.value)
