"""How many calls a sample has: what the runner requests, and what it measures again."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from runner.catalog.cases import CASES
from runner.core.model import Block, Cell, Measurement, Outcome, Past, Plan, PlannedCell, Provisioned
from runner.measure.batches import Batches, recorded_batch
from runner.measure.round_plan import RoundStep
from tests.support.fake_servers import FakeBackend, FakeServer, block, cells, outcomes

GEMM = next(name for name in CASES if name.startswith("deepbench-gemm/"))
STEP = "rnn-step/lstm-b32-h128"
READY = Provisioned(environment="a", framework="torch", handle="", digest="d", seconds=0.0, cached=True)


def cell(name: str, case_id: str = STEP, phase: str = "train") -> Cell:
    environment, slug = name.split("/")
    workload, case = case_id.split("/")
    return Cell(environment=environment, implementation=slug, workload=workload, case=case, phase=phase)


class _Device:
    """Answers as children do: each cell needs a batch, and has the time of a call."""

    def __init__(self, needs: Mapping[Cell, int], seconds: float = 1e-5, kind: str = "fused") -> None:
        self.needs, self.seconds = needs, seconds
        (case_id,) = {of.case_id for of in needs}
        self.block = Block(case_id=case_id, spec=CASES[case_id], device="cuda", cells=tuple(needs))
        planned = tuple(PlannedCell(cell=of, kind=kind, device="cuda") for of in needs)
        self.plan = Plan(
            device="cuda",
            backend="fake",
            measurement=Measurement(rounds=3, seconds=2.0),
            cells=planned,
            blocks=(self.block,),
            frameworks={},
        )
        self.requests: list[tuple[Cell, Mapping[str, int]]] = []
        self.messages: list[str] = []
        self.fails: set[Cell] = set()
        self.batches = Batches(self.plan)

    def resume(self, batches: Mapping[tuple[Cell, int], int]) -> None:
        self.batches = Batches(replace(self.plan, past=Past(batches=batches)))

    def reply(self, of: Cell, extra: Mapping[str, int]) -> dict[str, Any]:
        if of in self.fails:
            return {"status": "failed", "class": "crash", "reason": "it ended"}
        batch = extra.get("batch") or max(self.needs[of], extra.get("least_batch", 1))
        return {"status": "ok", "seconds": [self.seconds] * 3, "batch": batch, "wait_seconds": 1e-5}

    def measure(self, number: int = 1) -> dict[Cell, Any]:
        """Measure all cells in a round, and return the batches of the records."""

        def measured(of: Cell, extra: Mapping[str, int]) -> Outcome:
            self.requests.append((of, extra))
            return Outcome(cell=of, round=number, reply=self.reply(of, extra), facts={}, ready=READY)

        step = RoundStep(block=self.block, cells=self.block.cells, number=number, attempt=1)
        outcomes = list(self.batches.outcomes(step, self.block.cells, measured, self.messages.append))
        assert [outcome.cell for outcome in outcomes] == list(self.block.cells)
        return {outcome.cell: outcome.reply.get("batch") for outcome in outcomes}


A, B, C = cell("a/x"), cell("b/x"), cell("c/x")


def test_all_cells_get_the_largest_batch_that_one_of_them_needs() -> None:
    device = _Device({A: 16, B: 64, C: 32})
    assert device.measure() == {A: 64, B: 64, C: 64}
    assert device.requests == [(A, {}), (B, {"least_batch": 16}), (C, {"least_batch": 64}), (A, {"batch": 64})]
    assert len(device.messages) == 1


def test_later_rounds_keep_the_batch_whatever_the_times_are() -> None:
    device = _Device({A: 16, B: 64})
    device.measure()
    device.requests.clear()
    device.needs = {A: 1, B: 1024}
    assert device.measure(2) == device.measure(3) == {A: 64, B: 64}
    assert device.requests == [(A, {"batch": 64}), (B, {"batch": 64})] * 2


def test_equal_needs_are_measured_once() -> None:
    device = _Device({A: 16, B: 16})
    assert device.measure() == {A: 16, B: 16}
    assert len(device.requests) == 2
    assert not device.messages


def test_a_slow_cell_gets_no_batch_of_which_three_samples_exceed_the_budget() -> None:
    device = _Device({A: 1, B: 1024}, seconds=0.01)
    assert device.measure() == {A: 64, B: 1024}
    assert device.measure(2) == {A: 64, B: 1024}


def test_phases_and_kinds_have_batches_of_their_own() -> None:
    forward = cell("a/x", phase="forward")
    assert _Device({A: 16, forward: 64}).measure() == {A: 16, forward: 64}
    device = _Device({A: 16, cell("b/y"): 64})
    assert device.measure() == {A: 64, cell("b/y"): 64}
    device.plan = replace(device.plan, cells=(replace(device.plan.cells[0], kind="flexible"), device.plan.cells[1]))
    device.resume({})
    assert device.measure() == {A: 16, cell("b/y"): 64}


def test_single_operations_share_a_batch_by_implementation() -> None:
    first, second, other = (cell(name, GEMM, "forward") for name in ("a/matmul", "b/matmul", "a/other"))
    assert _Device({first: 64, second: 128, other: 16}, kind="vendor").measure() == {first: 128, second: 128, other: 16}


def test_a_failed_cell_decides_nothing_and_is_decided_later() -> None:
    device = _Device({A: 16, B: 64})
    device.fails = {A}
    assert device.measure() == {A: None, B: 64}
    device.fails = set()
    assert device.measure(2) == {A: 64, B: 64}


def test_a_resumed_run_keeps_the_batches_of_its_records() -> None:
    device = _Device({A: 16, B: 64})
    device.resume({(A, 1): 256, (B, 1): 256})
    assert device.measure(2) == {A: 256, B: 256}


def test_memory_groups_decide_for_themselves() -> None:
    device = _Device({A: 16, B: 64})
    device.resume({(A, 1): 256})
    assert device.measure(4) == {A: 64, B: 64}  # the first round of the second group
    assert device.measure(2) == {A: 256, B: 256}


@pytest.mark.parametrize("lacks", ["wait_seconds", "aligned"])
def test_batches_that_no_rule_decided_are_not_kept(lacks: str) -> None:
    """On a CPU, and in the published protocol."""
    facts = {"batch": 400, **({} if lacks == "wait_seconds" else {"wait_seconds": 1e-5})}
    of = cell("a/x", phase="train+published") if lacks == "aligned" else A
    assert recorded_batch(facts, of) is None
    assert recorded_batch({"batch": 400, "wait_seconds": 1e-5}, A) == 400
    batches = Batches(_Device({of: 1}).plan)
    batches.note(Outcome(cell=of, round=1, reply={"status": "ok", "seconds": [1.0], **facts}, facts={}, ready=READY))
    assert batches.request(of, 2) == {}


def test_rounds_send_the_batch_to_the_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {"a": 16, "b": 64}
    plain_reply = FakeServer.reply

    def reply(server: FakeServer, request: dict[str, Any], **message: Any) -> None:
        if request["op"] == "measure":
            batch = request.get("batch") or max(needs[server.environment], request.get("least_batch", 1))
            message = {**message, "batch": batch, "wait_seconds": 1e-5}
        plain_reply(server, request, **message)

    monkeypatch.setattr(FakeServer, "reply", reply)
    backend = FakeBackend()
    on_gpu = replace(block(*cells("a/x", "b/x")), device="cuda")
    measured = list(outcomes(backend, on_gpu, rounds=3, seconds=1000.0))
    assert len(measured) == 6
    assert {outcome.reply["batch"] for outcome in measured} == {64}
    later = [request.get("batch") for request in backend.measured() if "least_batch" not in request]
    assert later.count(64) >= 4
    assert later.count(None) == 1  # only the first cell of all decided alone
