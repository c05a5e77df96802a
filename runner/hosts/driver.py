"""Hand out the blocks of a run to the devices of several hosts, and collect what they measured."""

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from runner.core.errors import EngineError, Problem, RecordError
from runner.core.model import Cell, Record
from runner.core.units import duration
from runner.hosts import collector, tasks
from runner.hosts.collector import Collector
from runner.hosts.executors.executor import Completion
from runner.hosts.host_devices import JOIN_SECONDS, WAIT_SECONDS, Devices
from runner.hosts.planning import HostPlan, job, new_lease
from runner.hosts.tasks import Offer
from runner.hosts.waiting import QueuedBlock, WaitingBlocks
from runner.store.events import BlockLease
from runner.store.run import Run

MAX_ATTEMPTS = 4
"""How often a driver hands out the same block; then the block waits for the next driver of the run."""
MAX_IN_A_ROW = 8
"""Failures for each device, one after the other and without a block measured in between, that end the run."""


@dataclass(slots=True, kw_only=True)
class BlockDriver:
    """Hands out blocks, one at a time to each device.

    Attributes:
        devices: of all hosts.
        collector: adds blocks to the run of the driver, which the caller has locked.
        plan: what is measured, and on which kinds of devices.
        budget: seconds after which no more blocks are handed out; None without a limit.
        leases: key of a device -> the block that it measures now.
        ends: key of a device -> when it is expected to be free, on the clock of the devices.
        waiting: the blocks that no device has, and that have not failed.
        failed: case id -> a block that failed, and that waits for another host or until nothing else waits.
        failed_on: case id -> the hosts that have failed its block.
        in_a_row: failures since a block was measured.
        attempts: case id -> how often this driver has handed out its block.
        numbers: case id -> how often any driver of the run has.
        abandoned: case id -> why its block failed the last of MAX_ATTEMPTS times.
        expected: cell -> the seconds by which it brings the end of the run nearer.
    """

    devices: Devices
    collector: Collector
    plan: HostPlan
    budget: float | None = None
    leases: dict[str, BlockLease] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)
    waiting: WaitingBlocks = field(default_factory=WaitingBlocks)
    failed: dict[str, QueuedBlock] = field(default_factory=dict)
    failed_on: dict[str, set[str]] = field(default_factory=dict)
    in_a_row: int = 0
    attempts: Counter[str] = field(default_factory=Counter)
    numbers: dict[str, int] = field(default_factory=dict)
    abandoned: dict[str, str] = field(default_factory=dict)
    expected: dict[Cell, float] = field(default_factory=dict)

    @property
    def run(self) -> Run:
        """The run of the driver."""
        return self.collector.run

    def measure(self) -> None:
        """Measure every block that the run has not.

        Raises:
            EngineError: the scheduler is gone, no device is left that could go on, no device measures anything, or a
                block failed MAX_ATTEMPTS times and all others are measured; what was measured is kept.
            OSError: the driver cannot write.
        """
        journal = self.run.journal()
        self.numbers = {case_id: lease.number for case_id, lease in journal.leases.items()}
        self.waiting = WaitingBlocks(
            block for case_id, block in self.plan.blocks.items() if case_id not in journal.blocks
        )
        devices = max(1, len(self.devices.offers))
        cells = {cell for block in self.plan.plan.blocks if block.case_id not in journal.blocks for cell in block.cells}
        self.expected = {each.cell: each.seconds / devices for each in self.plan.plan.cells if each.cell in cells}
        self.devices.progress.begin(len(cells), sum(self.expected.values()))
        started = last_at_work = self.devices.clock()
        while self.waiting or self.failed or self.leases:
            now = self.devices.clock()
            if self.budget is not None and now - started > self.budget and (self.waiting or self.failed):
                self._skip((*self.waiting, *self.failed.values()), f"the budget of {duration(self.budget)} is spent")
                self.waiting, self.failed = WaitingBlocks(), {}
            self.devices.update()
            self._hand_out()
            last_at_work = now if self.leases or self.devices.inquiries else last_at_work
            if now - last_at_work > JOIN_SECONDS:
                blocks = itertools.islice((*self.waiting, *self.failed.values()), 3)
                names = ", ".join(block.case_id for block in blocks)
                message = "; ".join([f"no worker is left that can measure {names}", *self._reasons()])
                raise EngineError(Problem(message, hint="start one again"))
            for completion in self.devices.executor.completed(WAIT_SECONDS):
                self._take(completion)
        if self.abandoned:
            raise EngineError(Problem("; ".join(self._reasons()), hint="check the workers"))

    def _reasons(self) -> list[str]:
        """Return why blocks are abandoned, a sentence for each of the first three."""
        sentences = [
            f"{case_id} was handed out {MAX_ATTEMPTS} times and not measured: {reason}"
            for case_id, reason in itertools.islice(self.abandoned.items(), 3)
        ]
        if len(self.abandoned) > len(sentences):
            sentences.append(f"and {len(self.abandoned) - len(sentences)} more blocks")
        return sentences

    def _hand_out(self) -> None:
        """Give a block to each device that is free."""
        self.waiting.share(self._free_after())
        for key, offer in self.devices.free(self.leases):
            if offer.kind not in self.plan.parts:
                self.devices.refuse(key, f"the run has no plan for {offer.kind}, which joined after it started")
                continue
            block = self._take_waiting(key, offer) or self._take_failed(key)
            if block is None:
                continue
            self.ends[key] = self.devices.clock() + block.seconds[offer.kind]
            self.attempts[block.case_id] += 1
            number = self.numbers[block.case_id] = self.numbers.get(block.case_id, 0) + 1
            lease = self.leases[key] = new_lease(block.case_id, number, offer)
            self.run.note("leased", **lease.event())
            self.devices.progress.status(key, f"{offer.host}: {block.case_id}")
            part = self.plan.parts[offer.kind][block.case_id]
            task = job(lease, part, self.devices.project, self.devices.options, self.run.id)
            avoid = self.devices.failing | self.failed_on.get(block.case_id, frozenset())
            self.devices.executor.submit(key, tasks.encode(task), avoid)

    def _take_waiting(self, key: str, offer: Offer) -> QueuedBlock | None:
        """Remove and return a block that a device should measure next; one that fails gets what no other can run."""
        able = self.devices.able()
        if key in able:
            return self.waiting.take(offer.kind, self.devices.made[offer.host])
        return self.waiting.take_left_over(offer.kind, {each.kind for each in able.values()})

    def _take_failed(self, key: str) -> QueuedBlock | None:
        """Remove and return a failed block that a device should try: on another, good host if there is one."""
        for case_id, block in self.failed.items():
            hosts = {name: each.host for name, each in self.devices.offers.items() if each.kind in block.seconds}
            able = hosts.keys() - self.devices.failing or hosts.keys()
            others = {name for name in able if hosts[name] not in self.failed_on[case_id]} or able
            good = {name for name in others if not self.devices.failures[name]} or others
            if key in good:
                return self.failed.pop(case_id)
        return None

    def _free_after(self) -> dict[str, list[float]]:
        """Return kind of device -> the expected seconds until each device of that kind is free that does not fail."""
        now, seconds = self.devices.clock(), dict[str, list[float]]()
        for key, offer in self.devices.able().items():
            left = abs(self.ends[key] - now) if key in self.leases else 0.0  # late by now: as much again
            seconds.setdefault(offer.kind, []).append(left)
        return seconds

    def _take(self, completion: Completion) -> None:
        """Use how a task ended; a reply that belongs to no inquiry and no lease of its device is late, and ignored."""
        key = completion.key
        if key in self.devices.inquiries:
            self.devices.take_offer(completion)
            return
        lease = self.leases.get(key)
        if lease is None or (
            completion.result is not None and tasks.token_of(completion.result) not in (lease.token, "")
        ):
            self.devices.progress.note(f"{key}: a reply is late, and does not count")
            return
        del self.leases[key]
        self.devices.progress.finish(key)
        try:
            self._add(lease, completion)
            self.in_a_row = 0
            self.devices.count(completion.host or key, good=True)
            self.devices.made[lease.host] |= self.plan.blocks[lease.case_id].environments
        except RecordError as error:
            self._hand_back(lease, error.problems[0].message, completion)

    def _add(self, lease: BlockLease, completion: Completion) -> None:
        """Add the block of a lease to the run; raises RecordError where there is none."""
        if completion.result is None:
            raise RecordError(Problem(completion.reason))
        archive = collector.save(self.run, lease, tasks.payload(completion.result))
        records = self.collector.add(lease, archive)
        for record in records:
            self._show(record)
        host = next((record.facts["host"] for record in records), lease.host)
        self.devices.progress.note(f"{lease.case_id}: measured on {host}, {lease.device_name}")

    def _show(self, record: Record) -> None:
        progress = self.devices.progress
        if record.status != "ok":
            progress.note(f"{record.cell.id}: {record.failure}: {record.reason}")
        if record.round == 1:
            progress.advance(self.expected.get(record.cell, 0.0), record.cell.id)

    def _hand_back(self, lease: BlockLease, reason: str, completion: Completion) -> None:
        """Let the block of a lease wait again, or abandon it.

        Raises:
            EngineError: no device measures anything.
        """
        case_id, host = lease.case_id, completion.host or lease.host
        self.devices.progress.note(f"{case_id}: not measured on {host}: {reason}")
        if not completion.lost:
            self.devices.count(completion.host or completion.key, good=False)
            self.failed_on.setdefault(case_id, set()).add(host)
            self.in_a_row += 1
        is_measuring = not completion.host and self.leases.keys() & self.devices.able().keys()
        if self.in_a_row >= MAX_IN_A_ROW * max(1, len(self.devices.offers)) and not is_measuring:
            message = f"{self.in_a_row} blocks failed one after the other; the last is {case_id} on {host}: {reason}"
            raise EngineError(Problem(message, hint="check the workers"))
        if self.attempts[case_id] >= MAX_ATTEMPTS:
            self.abandoned[case_id] = reason
        elif completion.lost:
            self.waiting.add(self.plan.blocks[case_id])
        else:
            self.failed[case_id] = self.plan.blocks[case_id]

    def _skip(self, blocks: Iterable[QueuedBlock], reason: str) -> None:
        for block in blocks:
            self.run.note("skipped", case=block.case_id, reason=reason)
            self.devices.progress.note(f"{block.case_id}: skipped: {reason}")
