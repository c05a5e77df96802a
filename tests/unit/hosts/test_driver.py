"""Blocks are handed out to the devices of several hosts: nothing is lost, nothing counts twice."""

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from runner.core.errors import EngineError
from runner.hosts.collector import Collector, save
from runner.hosts.driver import MAX_ATTEMPTS, BlockDriver
from runner.hosts.executors.executor import Completion
from runner.hosts.host_devices import MAX_LOST
from runner.hosts.planning import HostPlan, plan_for_hosts
from runner.hosts.tasks import refusal
from runner.plan.document import plan_document
from runner.store.events import BlockLease
from runner.store.run import Run
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
    BlockDriver(devices=pool, collector=collector, plan=host_plan).measure()


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
    BlockDriver(devices=pool, collector=Collector(run), plan=host_plan).measure()
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


@pytest.mark.parametrize("count", [1, 2, 8])
def test_a_block_that_fails_everywhere_leaves_the_run_unfinished_after_the_others_are_measured(
    count: int, tmp_path: Path
) -> None:
    measured = plan(block(number) for number in range(3))
    executor = FakeHosts({str(key): offer(measured, str(key)) for key in range(count)}, tmp_path)

    def fail(key: str, job: object, completion: Completion) -> list[Completion]:
        bad = getattr(job, "case_id", "") == case_id(1)
        return [Completion(key, reason="no room", lost=False)] if bad else [completion]

    notes: list[str] = []
    executor.act = fail
    run = _run(tmp_path / "reports", plan_for_hosts(executor.offers.values(), controls=False))
    with pytest.raises(EngineError) as error:
        _measure(run, executor, notes)
    assert error.value.problems[0].message == (
        f"{case_id(1)} was handed out {MAX_ATTEMPTS} times and not measured: no room"
    )
    assert len(_counts(run)) == _expected(2)
    assert not run.journal().skipped
    executor.act = lambda _key, _job, completion: [completion]
    _measure(run, executor, notes)
    assert len(_counts(run)) == _expected(3)


def test_a_host_that_fails_everything_takes_no_part_and_the_others_measure_its_blocks(tmp_path: Path) -> None:
    measured = plan(block(number) for number in range(6))
    executor = FakeHosts({key: offer(measured, key) for key in ("bad", "good")}, tmp_path)
    executor.act = lambda key, _, completion: [
        Completion(key, reason="no room") if key == "bad" else completion,
    ]
    notes: list[str] = []
    run = _run(tmp_path / "reports", plan_for_hosts(executor.offers.values(), controls=False))
    _measure(run, executor, notes)
    assert len(_counts(run)) == _expected(6)
    assert notes.count("bad gets no blocks while others can measure them: it failed 2 one after the other") == 1
    assert [key for key, _ in executor.jobs].count("bad") == 2


@pytest.mark.parametrize(("bad", "blocks"), [(4, 5), (4, 6), (4, 12), (1, 1), (7, 3)])
def test_hosts_that_fail_everything_do_not_use_up_the_attempts_of_blocks(bad: int, blocks: int, tmp_path: Path) -> None:
    measured = plan(block(number) for number in range(blocks))
    executor = FakeHosts({str(key): offer(measured, str(key)) for key in range(bad + 1)}, tmp_path)
    executor.act = lambda key, _, completion: [
        completion if key == str(bad) else Completion(key, reason="no room"),
    ]
    run = _run(tmp_path / "reports", plan_for_hosts(executor.offers.values(), controls=False))
    _measure(run, executor, [])
    assert len(_counts(run)) == _expected(blocks)


@pytest.mark.parametrize(("count", "bad"), [(1, 2), (2, 4), (3, 1)])
def test_blocks_that_fail_everywhere_do_not_keep_devices_from_measuring_others(
    count: int, bad: int, tmp_path: Path
) -> None:
    measured = plan(block(number) for number in range(8))
    executor = FakeHosts({str(key): offer(measured, str(key)) for key in range(count)}, tmp_path)
    cases = {case_id(number) for number in range(bad)}
    executor.act = lambda key, job, completion: [
        Completion(key, reason="no room") if job.case_id in cases else completion
    ]
    run = _run(tmp_path / "reports", plan_for_hosts(executor.offers.values(), controls=False))
    with pytest.raises(EngineError, match="no room"):
        _measure(run, executor, [])
    assert len(_counts(run)) == _expected(8 - bad)


def test_a_kind_of_device_that_fails_everything_gets_only_what_no_other_can_run(tmp_path: Path) -> None:
    both, alone = [block(number) for number in range(20)], [block(20)]
    executor = FakeHosts(
        {"bad": offer(plan([*both, *alone]), "bad", "K1"), "good": offer(plan(both), "good", "K2")}, tmp_path
    )
    slow: list[Completion] = []

    def act(key: str, _: object, completion: Completion) -> list[Completion]:
        if key == "bad":
            return [Completion(key, reason="no room")]
        slow.append(completion)
        return []

    def completed(seconds: float) -> list[Completion]:
        completions = [*FakeHosts.completed(executor, seconds)]
        return completions or [slow.pop()] if slow else completions

    executor.act, executor.completed = act, completed  # type: ignore[method-assign]
    run = _run(tmp_path / "reports", plan_for_hosts(executor.offers.values(), controls=False))
    with pytest.raises(EngineError, match=f"{case_id(20)} was handed out 4 times"):
        _measure(run, executor, [])
    assert len(_counts(run)) == _expected(20)
    assert [key for key, _ in executor.jobs].count("bad") <= 2 + MAX_ATTEMPTS


def test_a_run_in_which_nothing_can_be_measured_ends_with_the_last_reason(tmp_path: Path) -> None:
    measured = plan(block(number) for number in range(40))
    executor = FakeHosts({key: offer(measured, key) for key in ("a", "b")}, tmp_path)
    executor.act = lambda key, _, __: [Completion(key, reason="no room")]
    run = _run(tmp_path / "reports", plan_for_hosts(executor.offers.values(), controls=False))
    with pytest.raises(EngineError, match=r"16 blocks failed one after the other; the last is .*: no room"):
        _measure(run, executor, [])
    assert len(executor.jobs) <= 17


def test_a_device_that_is_lost_before_it_says_what_it_would_measure_takes_no_part(
    four_blocks: tuple[FakeHosts, Run],
) -> None:
    executor, _ = four_blocks
    notes: list[str] = []
    pool = devices(executor, notes)
    for _ in range(MAX_LOST):
        assert "a" not in pool.refused
        pool.inquiries["a"] = "ab" * 16
        pool.take_offer(Completion("a", reason="job 7 of Slurm ended: CANCELLED", lost=True))
    assert notes[0] == "a has not said what it would measure: job 7 of Slurm ended: CANCELLED"
    assert notes[-1] == f"a takes no part: it has not said what it would measure {MAX_LOST} times"


def test_an_executor_that_chooses_hosts_is_asked_for_another_one(four_blocks: tuple[FakeHosts, Run]) -> None:
    executor, _ = four_blocks
    pool = devices(executor, [])
    pool.inquiries["a"] = "ab" * 16
    pool.take_offer(Completion("a", result=refusal("no engine", "ab" * 16), host="node7"))
    assert not pool.refused
    assert pool.failing == {"node7"}


@pytest.mark.parametrize("seed", range(12))
def test_whatever_workers_do_each_record_counts_once(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    measured = plan(block(number) for number in range(8))
    executor = FakeHosts({str(key): offer(measured, str(key)) for key in range(40)}, tmp_path, UnreliableHosts(draw))
    run = _run(tmp_path / "reports", plan_for_hosts(executor.offers.values(), controls=False))
    with suppress(EngineError):  # a block failed as often as a driver hands one out
        _measure(run, executor, [])
    assert set(_counts(run).values()) == {1}
    assert len(_counts(run)) == _expected(len(run.journal().blocks))
    for cell in {record.cell for record in run.records()}:
        assert len({record.attempt for record in run.records() if record.cell == cell}) == 1


def _is_killed(work: Callable[[], None], folder: Path, after: int, torn: float) -> bool:
    """Carry out work in a child process; return whether it was killed before its end.

    It is killed when it syncs a file of a folder for the ``after + 1``th time. If that file is the journal, only a
    share ``torn`` of what was appended to it is on the disk.
    """
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in {0, -signal.SIGKILL}
        return code != 0
    original, left, journal = os.fsync, iter(range(after, -1, -1)), folder / "journal.jsonl"
    size = [journal.stat().st_size]

    def sync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        is_last = path.is_relative_to(folder) and next(left) == 0
        if path == journal:
            size.append(os.fstat(descriptor).st_size)
            if is_last:
                os.ftruncate(descriptor, size[-2] + int(torn * (size[-1] - size[-2])))
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        original(descriptor)

    os.fsync = sync  # type: ignore[assignment]
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


def test_a_driver_that_is_killed_at_any_write_is_continued(tmp_path: Path) -> None:
    measured, draw = plan(block(number) for number in range(2)), random.Random(0)
    offers, deaths = {"a": offer(measured, "a")}, 0
    while True:
        run = _run(tmp_path / str(deaths), plan_for_hosts(offers.values(), controls=False))
        work = partial(_measure, run, FakeHosts(offers, tmp_path), [])
        if not _is_killed(work, run.path, deaths, draw.random()):
            break
        deaths += 1
        _measure(run, FakeHosts(offers, tmp_path), [])
        journal = run.journal()
        assert not journal.warnings
        assert {record.cell for record in run.records(journal)} == {each.cell for each in measured.cells}
        assert Counter((entry.cell, entry.round) for entry in journal.entries) == _counts(run)
        assert len(journal.entries) == _expected(2)
        assert len(journal.canary) == len(journal.times) == len(journal.finished) == 2 * ROUNDS
        assert len(journal.blocks) == 2
    assert deaths >= 2 * 8, "the lease, the archive, four records and their folder, and the journal are synced"


def test_a_damaged_archive_of_a_driver_that_died_is_measured_again(four_blocks: tuple[FakeHosts, Run]) -> None:
    executor, run = four_blocks
    lease = BlockLease(case_id=case_id(0), number=1, token="ab" * 16, host="h", device="cpu", device_name="CPU")
    run.note("leased", **lease.event())
    save(run, lease, b"half of an archive")
    _measure(run, executor, [])
    assert len(_counts(run)) == _expected(4)
    assert {record.attempt for record in run.records() if record.cell.case_id == case_id(0)} == {2}


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
        BlockDriver(devices=pool, collector=Collector(run), plan=host_plan).measure()
