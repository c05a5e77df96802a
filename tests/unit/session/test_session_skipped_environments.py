"""Environments of which nothing runs are named once for each reason."""

from runner.core.model import Request, Skip
from runner.matrix import parse
from runner.plan.planner import plan
from runner.session.execution import skipped_environments

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


def test_environments_with_one_reason_share_a_line() -> None:
    matrix = parse(TEXT.encode(), "m.yaml")
    unavailable = {"torch-2.1": NO_GPU, "torch-2.4": NO_GPU, "torch-2.6": NO_IMAGE}
    planned = plan(matrix, Request(environments=tuple(matrix.environments), backend="docker"), unavailable)
    assert skipped_environments(planned) == {NO_GPU: ["torch-2.1", "torch-2.4"], NO_IMAGE: ["torch-2.6"]}
