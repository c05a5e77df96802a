"""Environments of which nothing runs: those that the user named have their reasons, the others share a line."""

from collections.abc import Mapping

from runner.core.model import Request, Skip
from runner.matrix import parse
from runner.plan.planner import plan
from runner.session.execution.skips import skip_notes

TEXT = """
version: 1
workloads: {rnn-step: {phases: [forward]}}
environments:
  torch-1.0: {framework: torch, release: "1.0.0", image: a}
  torch-2.1: {framework: torch, release: "2.1.2", image: b}
  torch-2.4: {framework: torch, release: "2.4.1", image: c}
  torch-2.6: {framework: torch, release: "2.6.0", image: d}
"""
NO_GPU = Skip("needs-gpu", "matrix.yaml has no variant for cpu")
NO_IMAGE = Skip("image-unavailable", "d cannot be pulled")
OTHERS = "environments that you did not name"
PLAN = "`runner plan --why` has all reasons"
SKIPS = {"torch-2.1": NO_GPU, "torch-2.4": NO_GPU, "torch-2.6": NO_IMAGE}


def notes(unavailable: Mapping[str, Skip], *named: str) -> list[str]:
    matrix = parse(TEXT.encode(), "m.yaml")
    request = Request(environments=tuple(matrix.environments), backend="docker")
    return list(skip_notes(plan(matrix, request, unavailable), frozenset(named)))


def test_environments_that_were_named_have_a_line_for_each_reason() -> None:
    assert notes(SKIPS, *SKIPS) == [
        "skipped: torch-2.1, torch-2.4: needs-gpu: matrix.yaml has no variant for cpu",
        "skipped: torch-2.6: image-unavailable: d cannot be pulled",
    ]


def test_all_others_share_a_line() -> None:
    assert notes(SKIPS) == [f"skipped: 3 {OTHERS} (need a GPU: 2; need a lock or an image that is not here: 1); {PLAN}"]


def test_an_environment_that_was_named_comes_before_that_line() -> None:
    assert notes(SKIPS, "torch-1.0", "torch-2.4") == [
        "skipped: torch-2.4: needs-gpu: matrix.yaml has no variant for cpu",
        f"skipped: 2 {OTHERS} (need a GPU: 1; need a lock or an image that is not here: 1); {PLAN}",
    ]


def test_a_reason_that_all_others_have_is_named() -> None:
    assert notes({"torch-2.1": NO_GPU, "torch-2.4": NO_GPU}) == [
        "skipped: torch-2.1, torch-2.4: needs-gpu: matrix.yaml has no variant for cpu"
    ]


def test_without_skips_there_is_nothing_to_say() -> None:
    assert notes({}) == []
