"""What a round of a cell costs: measured, or estimated by similar cells; and what the budget has time for."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.analysis.stopping import Verdicts
from runner.core.model import CaseSkipped, Cell, Measurement, Outcome, Past, Plan, PlannedCell, Record, RoundTimes
from runner.core.model.devices import ClockPolicy
from runner.core.progress import Progress
from runner.gpu.device import DeviceSession
from runner.session.execution.costs import CellCosts, Spending, measured_seconds
from runner.session.execution.further_rounds import RoundScheduler
from runner.session.execution.recorder import RunRecorder
from runner.session.execution.resume import past
from runner.store.run import Run
from tests.support.fake_runs import bad, cell, good, make
from tests.support.fake_servers import block, cells
from tests.unit.session.execution.test_further_rounds import Clock
from tests.unit.session.execution.test_resume import made

CPU = DeviceSession(None, ClockPolicy(), pytest.fail)


def test_a_cell_costs_its_round_without_the_turns_of_others() -> None:
    assert measured_seconds({"round_seconds": 7.5}, (0.5,)) == 7.5
    assert measured_seconds({}, (0.5,)) is None
    turns = {"round_seconds": 99.0, "turns": [1], "build_seconds": 1.0, "warmup_seconds": 0.5, "check_seconds": 2.0}
    assert measured_seconds({**turns, "batch": 10}, (0.1, 0.2)) == pytest.approx(6.5)


def test_the_next_round_of_a_plain_process_has_no_check() -> None:
    facts = {"turns": [1], "build_seconds": 1.0, "warmup_seconds": 0.5, "check_seconds": 2.0, "process": "plain"}
    assert measured_seconds(facts, (0.5,)) == pytest.approx(4.0)
    assert measured_seconds(facts, (0.5,), again=True) == pytest.approx(2.0)
    assert measured_seconds({**facts, "process": "fork"}, (0.5,), again=True) == pytest.approx(4.0)
    assert measured_seconds({"round_seconds": 7.5, "check_seconds": 2.0, "process": "plain"}, (), again=True) == 7.5


def test_a_measured_cell_costs_what_it_took_last() -> None:
    first, second = cells("a/x", "a/y")
    costs = CellCosts({first: 2.0, second: 4.0})
    assert (costs.seconds(first), costs.seconds(second)) == (2.0, 4.0)
    costs.add(first, 30.0)
    costs.add(first, 6.0)  # the first round compiled
    assert (costs.seconds(first), costs.seconds(second)) == (6.0, 12.0)


def test_a_cell_that_is_not_measured_again_costs_nothing_more(tmp_path: Path) -> None:
    plan = planned(("one", "two"), budget=1000.0)
    recorder, _, _, _ = recorded(tmp_path, plan)
    first, second = plan.blocks[0].cells
    for each, failure in ((first, "timeout"), (second, "crash")):
        reply = {"status": "failed", "class": failure, "reason": "", "round_seconds": 600.0}
        recorder.record(replace(outcome(each, 1.0), reply=reply), 600.0, CPU)
    assert (recorder.costs.seconds(first), recorder.costs.seconds(second)) == (0.0, 2.0)  # a crash is tried again
    assert recorder.costs.elapsed([first, second]) == 600.0


def test_an_estimate_is_corrected_by_the_cells_most_alike() -> None:
    known, alike, same_environment, other = (
        cell("torch-2.x", "nn-lstm", case="1x320-ce-short"),
        cell("torch-2.x", "nn-lstm", case="1x320-ce-long"),
        cell("torch-2.x", "lstm-cell-basic"),
        cell("tf-2.x", "basic-lstm-cell"),
    )
    estimated = dict.fromkeys((known, alike, same_environment, other), 10.0)
    costs = CellCosts(estimated, {known: 20.0, same_environment: 5.0})
    assert costs.seconds(alike) == 20.0
    assert costs.seconds(cell("torch-2.x", "other")) == 0.0  # no cell of the plan
    assert costs.seconds(other) == pytest.approx(12.5)  # 25 s for 20 s
    unlike = cell("torch-2.x", "lstm-cell-fused")
    assert CellCosts({**estimated, unlike: 4.0}, {known: 20.0}).seconds(unlike) == 8.0


def planned(names: tuple[str, ...], budget: float | None, seconds: float = 6.0, attempts: Any = None) -> Plan:
    """Return a plan with a block of two cells for each case; a cell takes ``seconds`` in three rounds."""
    blocks = tuple(block(*cells("a/x", "b/x", case=name)) for name in names)
    every = [cell for each in blocks for cell in each.cells]
    return Plan(
        device="cuda",
        backend="fake",
        measurement=Measurement(rounds=3, budget=budget),
        cells=tuple(PlannedCell(cell=each, device="cuda", seconds=seconds) for each in every),
        blocks=blocks,
        frameworks=dict.fromkeys("ab", "torch"),
        past=Past(attempts=attempts or {}),
    )


def scheduler(plan: Plan, clock: Clock, folder: Path, **spending: float) -> RoundScheduler:
    costs = CellCosts({each.cell: each.seconds / 3 for each in plan.cells})
    return RoundScheduler(
        plan, make(folder, []), Verdicts(0.02), lambda _: None, clock, Spending(costs=costs, **spending)
    )


def test_nothing_is_refused_before_anything_was_measured_or_the_budget_is_spent(tmp_path: Path) -> None:
    plan, clock = planned(("one", "two", "three"), budget=1.0), Clock()
    choose = scheduler(plan, clock, tmp_path)
    assert [choose.over_budget(each) for each in plan.blocks[:2]] == ["", ""]
    choose.costs.abandon(plan.blocks[0].cells[0], 0.5)
    fourth = block(*cells("a/x", "b/x", case="four"))
    assert choose.over_budget(fourth) == ""
    clock.now = 2.0  # nothing succeeded
    assert choose.over_budget(plan.blocks[2]) == "the budget of 1 s is spent"
    late = scheduler(plan, clock, tmp_path / "late", before=5.0)
    assert late.over_budget(plan.blocks[0]) == ""  # the first case is always measured


def test_a_case_is_refused_by_what_was_measured_and_the_reason_has_the_numbers(tmp_path: Path) -> None:
    plan, clock = planned(("one", "two", "three"), budget=100.0), Clock()
    choose = scheduler(plan, clock, tmp_path)
    first, second, third = plan.blocks
    assert choose.over_budget(first) == ""
    for each in first.cells:  # 10 times as slow as estimated
        choose.costs.add(each, 20.0)
    clock.now = 40.0
    # 60 s remain; the first case needs 80 s of them: 2 tests, 2 rounds, 20 s each
    reason = choose.over_budget(second)
    assert reason.startswith("3 rounds would take about 2 min 00 s, by what was measured until now; 0")
    assert "of the budget of 1 min 40 s remain" in reason
    assert choose.over_budget(first) == ""  # it has started
    faster = scheduler(plan, clock, tmp_path / "faster")
    faster.over_budget(first)
    for each in first.cells:
        faster.costs.add(each, 1.0)
    clock.now = 42.0
    # 98 s remain; the first case needs 4 s, and 2 rounds of starting servers none; each case takes 6 s
    assert (faster.over_budget(second), faster.over_budget(third)) == ("", "")


def test_starting_servers_and_what_others_need_count(tmp_path: Path) -> None:
    plan = planned(("one", "two"), budget=100.0)
    first, second = plan.blocks

    def refused(elapsed: float, once: float = 0.0, **spending: float) -> bool:
        clock = Clock()
        choose = scheduler(plan, clock, tmp_path / f"{elapsed}-{once}-{len(spending)}", **spending)
        choose.over_budget(first)
        for each in first.cells:
            choose.costs.add(each, 2.0)
        clock.now = elapsed
        return bool(choose.over_budget(second, once))

    assert not refused(4.0)  # 12 s of 96 s
    assert refused(34.0)  # 30 s of starting in each of two more rounds: 66 - 60 - 8 s remain
    assert not refused(34.0, once=30.0)  # references and compiled code are kept
    assert refused(4.0, reserved=80.0)


def test_a_run_without_a_budget_refuses_nothing_and_a_resumed_one_goes_on(tmp_path: Path) -> None:
    for index, plan in enumerate((planned(("one",), None), planned(("one",), 1.0, attempts={("rnn-step/one", 1): 1}))):
        choose = scheduler(plan, Clock(), tmp_path / str(index))
        choose.costs.add(plan.blocks[0].cells[0], 1e6)
        assert choose.over_budget(plan.blocks[0]) == ""


def test_a_measured_cell_needs_no_pace_to_decide_the_further_rounds(tmp_path: Path) -> None:
    plan = planned(("one",), None)
    choose = scheduler(plan, Clock(), tmp_path)
    first = plan.blocks[0].cells[0]
    choose.costs.add(first, 50.0)
    assert choose._round_seconds()[first] == 50.0


def recorded(folder: Path, plan: Plan) -> tuple[RunRecorder, Run, list[str], Clock]:
    lines, clock, run = list[str](), Clock(), make(folder, [])
    return RunRecorder(plan, run, Progress(lines.append, clock)), run, lines, clock


def outcome(of: Cell, seconds: float) -> Outcome:
    reply = {"status": "ok", "seconds": [0.5], "round_seconds": seconds}
    return Outcome(cell=of, round=1, reply=reply, facts={}, ready=made(of.environment, "1"))


def test_after_the_first_round_the_remaining_time_is_that_of_measured_cells(tmp_path: Path) -> None:
    plan = planned(("one",), None)
    recorder, _, _, clock = recorded(tmp_path, plan)
    assert recorder.progress.remaining_seconds() == 12.0
    for each in plan.blocks[0].cells:
        recorder.record(outcome(each, 25.0), 1.0, CPU)
    clock.now = 50.0
    recorder.record(RoundTimes(1, {"samples": 50.0}), 50.0, CPU)
    assert recorder.progress.remaining_seconds() == pytest.approx(100.0)
    clock.now = 75.0
    recorder.record(replace(outcome(plan.blocks[0].cells[0], 25.0), round=2), 75.0, CPU)
    assert recorder.progress.remaining_seconds() == pytest.approx(75.0)


def test_the_wait_for_the_device_is_not_part_of_the_speed(tmp_path: Path) -> None:
    plan = planned(("one",), None)
    recorder, _, _, clock = recorded(tmp_path, plan)
    clock.now = 300.0  # another run was measured
    recorder.start()
    clock.now = 302.0
    recorder.record(outcome(plan.blocks[0].cells[0], 2.0), 2.0, CPU)
    assert recorder.progress.remaining_seconds() == pytest.approx(10.0)


def test_what_a_network_prints_is_kept_and_what_others_print_is_not(tmp_path: Path) -> None:
    plan = planned(("one",), None)
    recorder, run, _, _ = recorded(tmp_path, plan)
    first, second = (outcome(each, 2.0) for each in plan.blocks[0].cells)
    recorder.record(replace(first, reply={**first.reply, "log": "a warning"}), 2.0, CPU)
    assert not list(run.path.glob("logs/*"))
    recorder.models = {plan.blocks[0].case_id: {}}
    recorder.record(replace(second, reply={**second.reply, "log": "a line of the user"}), 4.0, CPU)
    (log,) = run.path.glob("logs/*")
    assert "a line of the user" in log.read_text()


def test_what_a_round_takes_beside_its_cells_is_expected_again_but_for_references_and_compiling(tmp_path: Path) -> None:
    plan = planned(("one",), None)
    recorder, *_ = recorded(tmp_path, plan)
    for number, of_start in ((1, 10.0), (2, 25.0)):
        for each in plan.blocks[0].cells:
            recorder.record(replace(outcome(each, 25.0), round=number), 1.0, CPU)
        recorder.record(RoundTimes(number, {"turns": 50.0, "start": of_start, "compile": 90.0}), 1.0, CPU)
        assert recorder.progress.remaining_seconds() == pytest.approx((3 - number) * (50.0 + of_start))


def test_a_case_without_time_is_said_kept_and_expected_no_more(tmp_path: Path) -> None:
    plan = planned(("one", "two"), 10.0)
    recorder, run, lines, _ = recorded(tmp_path, plan)
    recorder.record(CaseSkipped("rnn-step/two", plan.blocks[1].cells, "3 rounds would take long"), 1.0, CPU)
    assert (recorder.progress.total, recorder.progress.remaining_seconds()) == (6, 12.0)
    assert lines == ["rnn-step/two: 2 tests skipped: over-budget: 3 rounds would take long"]
    assert run.journal().skipped == {"rnn-step/two": "3 rounds would take long"}
    assert json.loads((run.path / "journal.jsonl").read_text().splitlines()[-1])["event"] == "skipped"


def test_a_resumed_run_knows_what_its_cells_took(tmp_path: Path) -> None:
    records: list[Record] = [
        good(cell(), 1, [0.5], round_seconds=9.0),
        good(cell(), 2, [0.5], round_seconds=4.0),
        bad(cell("tf-2.x", "basic-lstm-cell"), 1, "oom", "", round_seconds=3.0),
    ]
    run = make(tmp_path, records)
    assert past(run, run.journal()).seconds == {cell(): 4.0}
