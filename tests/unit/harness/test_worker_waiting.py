"""After what a GPU is waited for: each sample, each call, or all calls of the published protocol."""

from collections.abc import Mapping
from typing import Any

import pytest

from runner.catalog.cases import CASES
from runner.harness import queueing, script_stack, worker
from runner.harness.adapters.base import Implementation
from runner.harness.verify.trial import Trial

FIRST = {workload: next(name for name in CASES if name.startswith(f"{workload}/")) for workload in (
    *("deepbench-gemm", "deepbench-conv", "deepbench-rnn", "deepbench-sparse", "deepbench-allreduce"),
    *("rnn-step", "asr-lstm"),
)}  # fmt: skip


class _Program:
    """Counts its calls and the waits after them; time does not matter."""

    waits_for_device = False

    def __init__(self) -> None:
        self.calls = [0]

    def forward(self) -> None:
        self.calls[-1] += 1

    def synchronize(self) -> None:
        self.calls.append(0)


def request(workload: str, **changes: Any) -> dict[str, Any]:
    case = dict(CASES[FIRST[workload]])
    defaults = {"case": case, "phase": "forward", "device": "cuda", "precision": "fp32", "seconds": 1.0}
    return {**defaults, **changes}


def published(workload: str, device: str, sizes: Mapping[str, int] | None = None) -> tuple[dict[str, Any], list[int]]:
    """Return what the published protocol gives, and the calls before each wait."""
    cell_request = request(workload, device=device)
    cell_request["case"].update(sizes or {})
    program = _Program()
    trial: Any = Trial
    times = script_stack.run(trial(Implementation, cell_request, {}).time_iterations(program, "forward"))
    return times, [calls for calls in program.calls if calls]


@pytest.mark.parametrize(
    ("workload", "kept"),
    [("deepbench-gemm", 400), ("deepbench-conv", 300), ("deepbench-rnn", 100), ("deepbench-sparse", None)],
)
def test_published_calls_of_a_gpu_are_queued_and_waited_for_once(workload: str, kept: int | None) -> None:
    times, calls = published(workload, "cuda")
    assert len(times["seconds"]) == len(times["warmup"]) == 1
    assert calls[:2] == [1, times["batch"]]
    assert kept is None or times["batch"] == kept
    assert set(calls[2:]) == {1}  # for the latency of a single call
    assert times["latency_seconds"] > 0


@pytest.mark.parametrize(
    ("workload", "device"), [("deepbench-gemm", "cpu"), ("deepbench-allreduce", "cuda"), ("asr-lstm", "cuda")]
)
def test_published_calls_are_waited_for_one_by_one_elsewhere(workload: str, device: str) -> None:
    times, calls = published(workload, device, {"floats": 10**8} if workload == "deepbench-allreduce" else None)
    assert set(calls) == {1}
    assert len(calls) == len(times["warmup"]) + len(times["seconds"])
    assert "batch" not in times


def test_rule_depends_on_what_is_timed() -> None:
    operation, step = worker.sample_rule(request("deepbench-gemm")), worker.sample_rule(request("rnn-step"))
    assert (operation.shortest, operation.longest_step) == (queueing.OPERATION_SECONDS, queueing.ANY_LENGTH)
    assert (step.shortest, step.longest_step) == (queueing.STEP_SECONDS, queueing.STEP_SECONDS)
    assert worker.sample_rule(request("deepbench-allreduce")) is None


def test_rule_takes_the_batch_of_the_request() -> None:
    assert worker.sample_rule(request("deepbench-gemm", batch=16)).exact_batch == 16
    assert worker.sample_rule(request("rnn-step", least_batch=16)).least_batch == 16


@pytest.mark.parametrize(
    ("workload", "phase", "waits", "waited_after"),
    [
        ("deepbench-gemm", "forward", False, "each sample"),
        ("deepbench-gemm", "forward+published", False, "all calls"),
        ("deepbench-gemm", "forward", True, "each call"),
        ("deepbench-allreduce", "forward+published", False, "each call"),
    ],
)
def test_record_says_after_what_the_device_was_waited_for(
    workload: str,
    phase: str,
    waits: bool,  # noqa: FBT001
    waited_after: str,
) -> None:
    times = {"seconds": [1.0, 1.0], "dispatch_seconds": 0.95}
    described = worker.on_device(waits, request(workload, phase=phase), times)
    assert described["waited_after"] == waited_after
    assert described.get("host_bound") is (None if waits else True)
    assert worker.on_device(waits, request(workload, phase=phase, device="cpu"), times) == times
