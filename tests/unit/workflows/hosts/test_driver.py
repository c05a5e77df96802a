"""Blocks are handed out to the devices of several hosts: nothing is lost, nothing counts twice."""

import random
from collections import Counter
from pathlib import Path

import pytest

from runner.core.errors import EngineError
from runner.plan.document import plan_document
from runner.store.run import Run
from runner.workflows.hosts.driver import MAX_ATTEMPTS, Driver
from runner.workflows.hosts.executors import Completion
from runner.workflows.hosts.planning import HostPlan, plan_for_hosts
from runner.workflows.hosts.results import Collector
from runner.workflows.hosts.tasks import refusal
from tests.support.fake_hosts import ROUNDS, FakeHosts, UnreliableHosts, block, case_id, devices, offer, plan
from tests.support.fake_runs import MACHINE, NOW


def _run(reports: Path, host_plan: HostPlan) -> Run:
    cases = {each.case_id: each.spec for each in host_plan.plan.blocks}
    return Run.create(reports, plan_document(host_plan.plan), cases, MACHINE, {"executor": "fake://"}, NOW)


def _measure(run: Run, executor: FakeHosts, notes: list[str]) -> None:
    """Continue a run as a new driver does."""
    pool = devices(executor, notes)
    host_plan = plan_for_hosts(pool.first_offers(), controls=False)
    collector = Collector(run)
    collector.add_saved()
    Driver(devices=pool, collector=collector, plan=host_plan).measure()


def _counts(run: Run) -> Counter[tuple[str, int]]:
    return Counter((entry.cell, entry.round) for entry in run.journal().counting())


def _expected(blocks: int) -> int:
    return blocks * 2 * ROUNDS


@pytest.fixture
def four_blocks(tmp_path: Path) -> tuple[FakeHosts, Run]:
    """Return two devices that run four blocks, and the new run of a driver."""
    measured = plan(block(number) for number in range(4))
    executor = FakeHosts({key: offer(measured, key) for key in ("a", "b")}, tmp_path)
    return executor, _run(tmp_path / "reports", plan_for_hosts(executor.offers.values(), controls=False))


def test_every_block_is_measured_once(four_blocks: tuple[FakeHosts, Run]) -> None:
    executor, run = four_blocks
    _measure(run, executor, [])
    assert Counter(case for _, case in executor.jobs) == Counter(map(case_id, range(4)))
    assert set(_counts(run).values()) == {1}
    assert len(_counts(run)) == _expected(4)
    assert {record.facts["host"] for record in run.records()} == {"host-a", "host-b"}
    assert len(run.journal().finished) == 4 * ROUNDS
    assert set(run.environments()) == {"torch-1.0", "torch-2.x"}


def test_nothing_remains_to_be_expected_at_the_end(four_blocks: tuple[FakeHosts, Run]) -> None:
    executor, run = four_blocks
    pool = devices(executor, [])
    host_plan = plan_for_hosts(pool.first_offers(), controls=False)
    Driver(devices=pool, collector=Collector(run), plan=host_plan).measure()
    progress = pool.progress
    assert (progress.completed, progress.total) == (8, 8)
    assert progress.expected_seconds == pytest.approx(sum(each.seconds for each in host_plan.plan.cells) / 2)
    assert progress.expected_seconds == pytest.approx(progress.completed_seconds)
    assert progress.remaining_seconds() == pytest.approx(0.0)


def test_a_block_of_a_lost_worker_is_measured_by_another(four_blocks: tuple[FakeHosts, Run]) -> None:
    executor, run = four_blocks

    def lose_a(key: str, _: object, completion: Completion) -> list[Completion]:
        if key == "a":
            del executor.offers["a"]
            return [Completion(key, reason="the worker has left the scheduler", lost=True)]
        return [completion]

    notes: list[str] = []
    executor.act = lose_a
    _measure(run, executor, notes)
    assert len(_counts(run)) == _expected(4)
    assert {record.facts["host"] for record in run.records()} == {"host-b"}
    assert any("not measured on host-a: the worker has left the scheduler" in note for note in notes)


def test_a_device_that_cannot_read_its_inquiry_takes_no_part_and_nobody_waits_for_it(
    four_blocks: tuple[FakeHosts, Run],
) -> None:
    executor, _ = four_blocks
    notes: list[str] = []
    pool = devices(executor, notes)
    pool.inquiries["a"] = "ab" * 16
    pool.take_offer(Completion("a", result=refusal("driver and worker differ in their version", "")))
    assert (pool.inquiries, pool.refused) == ({}, {"a"})
    assert notes == ["a takes no part: driver and worker differ in their version"]


def test_a_late_reply_does_not_count(four_blocks: tuple[FakeHosts, Run]) -> None:
    executor, run = four_blocks
    late: list[Completion] = []

    def lose_first(_key: str, _: object, completion: Completion) -> list[Completion]:
        if not late:
            late.append(completion)
            return [Completion(completion.key, reason="no answer", lost=True)]
        return [*late[:1], completion]  # the reply of the lost worker arrives before that of the new lease

    notes: list[str] = []
    executor.act = lose_first
    _measure(run, executor, notes)
    assert len(_counts(run)) == _expected(4)
    assert any(note.endswith("a reply is late, and does not count") for note in notes)
    attempts = {record.attempt for record in run.records() if record.cell.case_id == executor.jobs[0][1]}
    assert attempts == {2}


def test_a_block_that_fails_everywhere_is_given_up_and_the_others_are_measured(tmp_path: Path) -> None:
    measured = plan(block(number) for number in range(3))
    executor = FakeHosts({str(key): offer(measured, str(key)) for key in range(8)}, tmp_path)

    def fail(key: str, job: object, completion: Completion) -> list[Completion]:
        bad = getattr(job, "case_id", "") == case_id(1)
        return [Completion(key, reason="no room", lost=False)] if bad else [completion]

    notes: list[str] = []
    executor.act = fail
    run = _run(tmp_path / "reports", plan_for_hosts(executor.offers.values(), controls=False))
    _measure(run, executor, notes)
    assert len(_counts(run)) == _expected(2)
    assert run.journal().skipped == {case_id(1): f"it was handed out {MAX_ATTEMPTS} times: no room"}


@pytest.mark.parametrize("seed", range(12))
def test_whatever_workers_do_each_record_counts_once(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    measured = plan(block(number) for number in range(8))
    executor = FakeHosts({str(key): offer(measured, str(key)) for key in range(40)}, tmp_path, UnreliableHosts(draw))
    run = _run(tmp_path / "reports", plan_for_hosts(executor.offers.values(), controls=False))
    _measure(run, executor, [])
    missing = len(run.journal().skipped)
    assert set(_counts(run).values()) == {1}
    assert len(_counts(run)) == _expected(8 - missing)
    for cell in {record.cell for record in run.records()}:
        assert len({record.attempt for record in run.records() if record.cell == cell}) == 1


@pytest.mark.parametrize("seed", range(8))
def test_a_driver_that_dies_at_any_write_is_continued(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    measured = plan(block(number) for number in range(3))
    offers = {key: offer(measured, key) for key in ("a", "b")}
    run = _run(tmp_path / "reports", plan_for_hosts(offers.values(), controls=False))
    original, deaths = Run.note, 0

    def note(self: Run, event: str, **fields: object) -> None:
        if self.id == run.id and draw.random() < 0.2:
            raise KeyboardInterrupt  # as a kill: nothing after this line happens
        original(self, event, **fields)

    monkeypatch.setattr(Run, "note", note)
    for _ in range(200):
        try:
            _measure(run, FakeHosts(offers, tmp_path), [])
        except KeyboardInterrupt:
            deaths += 1
        else:
            break
    assert deaths
    assert set(_counts(run).values()) == {1}
    assert len(_counts(run)) == _expected(3)
    assert len(run.journal().blocks) == 3


def test_a_lost_scheduler_ends_the_run_and_keeps_what_was_measured(four_blocks: tuple[FakeHosts, Run]) -> None:
    executor, run = four_blocks

    def end(_key: str, _: object, completion: Completion) -> list[Completion]:
        executor.gone = len(executor.jobs) > 2
        return [completion]

    executor.act = end
    with pytest.raises(EngineError, match="the scheduler is gone"):
        _measure(run, executor, [])
    executor.gone, executor.act = False, lambda _key, _job, completion: [completion]
    done = set(run.journal().blocks)
    executor.jobs.clear()
    executor.queue.clear()
    _measure(run, executor, [])
    assert done
    assert not done & {case for _, case in executor.jobs}
    assert len(_counts(run)) == _expected(4)


def test_a_run_without_any_device_left_ends(tmp_path: Path) -> None:
    measured = plan([block(0)])
    executor = FakeHosts({"a": offer(measured, "a")}, tmp_path)
    now = iter(range(0, 10_000, 10))

    def leave(key: str, _: object, _completion: Completion) -> list[Completion]:
        executor.offers.clear()
        return [Completion(key, reason="gone", lost=True)]

    executor.act = leave
    pool = devices(executor, [], lambda: float(next(now)))
    host_plan = plan_for_hosts(pool.first_offers(), controls=False)
    run = _run(tmp_path / "reports", host_plan)
    with pytest.raises(EngineError, match=f"no worker is left that can measure {case_id(0)}"):
        Driver(devices=pool, collector=Collector(run), plan=host_plan).measure()
