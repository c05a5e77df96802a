"""Hand out the blocks of a run to the devices of several hosts, and collect what they measured."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from runner.core.errors import EngineError, NothingSelectedError, Problem, RecordError
from runner.core.progress import Progress
from runner.core.units import duration
from runner.plan.hosts import Waiting, next_block
from runner.store.run import Run
from runner.workflows.hosts import results, tasks
from runner.workflows.hosts.executors import Completion, Executor
from runner.workflows.hosts.planning import HostPlan, job, new_lease
from runner.workflows.hosts.results import Lease
from runner.workflows.hosts.tasks import Inquiry, Offer

MAX_LEASES = 4
"""How often a block is handed out; a block that lost its workers as often is given up."""
WAIT_SECONDS = 1.0
"""How long the driver waits for results before it looks for new devices."""
JOIN_SECONDS = 60.0
"""How long a run waits for its first device."""


@dataclass(slots=True, kw_only=True)
class Driver:
    """Hands out blocks, one at a time to each device.

    Attributes:
        executor: reaches the devices.
        project: the archive of ``project.pack``.
        options: of ``tasks.sent_options``.
        progress: shows the work.
        clock: seconds, monotonic.
        offers: key of a device -> what it would measure.
        asked: keys of the devices that plan now.
        leases: key of a device -> the block that it measures now.
    """

    executor: Executor
    project: bytes
    options: Mapping[str, object]
    progress: Progress
    clock: Callable[[], float] = time.monotonic
    offers: dict[str, Offer] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    leases: dict[str, Lease] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    bookkeeping: float = 0.0

    def ask_devices(self) -> None:
        """Ask each new device what it would measure; forget those that are gone."""
        present = self.executor.devices()
        for key in set(self.offers) - set(present):
            del self.offers[key]
        for key in sorted(set(present) - set(self.offers) - self.asked - self.refused):
            self.asked.add(key)
            self.executor.submit(key, tasks.encode(Inquiry(project=self.project, options=self.options)))

    def take_offer(self, completion: Completion) -> None:
        """Keep the offer of a device, or say why it takes no part."""
        self.asked.discard(completion.key)
        if completion.lost:
            return
        try:
            if completion.result is None:
                raise RecordError(Problem(completion.reason))
            offer = tasks.decode(tasks.payload(completion.result, ""))
        except RecordError as error:
            self.refused.add(completion.key)
            self.progress.note(f"{completion.key} takes no part: {error.problems[0].message}")
            return
        if isinstance(offer, Offer):
            self.offers[completion.key] = offer
            self.progress.note(f"{offer.host}: {offer.device_name} takes part")

    def first_offers(self) -> tuple[Offer, ...]:
        """Return the offers of all devices that answer at the start.

        Raises:
            EngineError: no device joined within ``JOIN_SECONDS``, or the scheduler is gone.
            NothingSelectedError: no device can take part.
        """
        limit = self.clock() + JOIN_SECONDS
        while True:
            self.ask_devices()
            if not self.asked and self.offers:
                return tuple(offer for _, offer in sorted(self.offers.items()))
            if not self.asked and self.refused:
                raise NothingSelectedError(Problem("no device takes part", hint="the reasons are above"))
            if self.clock() > limit and not self.asked:
                hint = "start one with `runner worker ADDRESS` on each host"
                raise EngineError(Problem(f"no worker joined within {JOIN_SECONDS:.0f} s", hint=hint))
            for completion in self.executor.completed(WAIT_SECONDS):
                self.take_offer(completion)

    def measure(self, run: Run, host_plan: HostPlan, budget: float | None = None) -> None:
        """Measure every block that the run has not, and add the results to the run.

        Args:
            run: the run of the driver, locked by the caller.
            host_plan: what is measured, and on which kinds of devices.
            budget: seconds after which no more blocks are handed out; None without a limit.

        Raises:
            EngineError: the scheduler is gone; what was measured is kept.
        """
        journal, started = run.journal(), self.clock()
        numbers = {case_id: int(event["lease"]) for case_id, event in journal.leases.items()}
        waiting = [block for case_id, block in host_plan.blocks.items() if case_id not in journal.blocks]
        while waiting or self.leases:
            self.ask_devices()
            if budget is not None and self.clock() - started > budget and waiting:
                self._skip(run, waiting, f"the budget of {duration(budget)} is spent")
                waiting = []
            self._hand_out(run, host_plan, waiting, numbers)
            for completion in self.executor.completed(WAIT_SECONDS):
                lease = self.leases.pop(completion.key, None)
                if lease is None:
                    self.take_offer(completion)
                elif self._finished(run, lease, completion):
                    continue
                elif numbers[lease.case_id] < MAX_LEASES and completion.lost:
                    waiting.append(host_plan.blocks[lease.case_id])
                else:
                    self._skip(run, [host_plan.blocks[lease.case_id]], completion.reason)

    def _hand_out(self, run: Run, host_plan: HostPlan, waiting: list[Waiting], numbers: dict[str, int]) -> None:
        """Give a block to each device that is free."""
        for key, offer in sorted(self.offers.items()):
            if key in self.leases or offer.kind not in host_plan.by_kind:
                continue
            block = next_block(waiting, offer.kind, offer.made)
            if block is None:
                continue
            waiting.remove(block)
            numbers[block.case_id] = numbers.get(block.case_id, 0) + 1
            lease = self.leases[key] = new_lease(block.case_id, numbers[block.case_id], offer)
            run.note("leased", **lease.event())
            part = job(lease, host_plan.by_kind[offer.kind], self.project, self.options, run.id)
            self.progress.status(key, f"{offer.host}: {block.case_id}")
            self.executor.submit(key, tasks.encode(part))

    def _finished(self, run: Run, lease: Lease, completion: Completion) -> bool:
        """Add a block that was measured to the run; return whether it was."""
        self.progress.finish(completion.key)
        if completion.result is not None:
            try:
                archive = results.save(run, lease, tasks.payload(completion.result, lease.token))
                records = results.add(run, lease, archive)
            except RecordError as error:
                completion = Completion(completion.key, reason=error.problems[0].message, lost=True)
        if completion.result is None:
            state = "lost" if completion.lost else "failed"
            self.progress.note(f"{lease.case_id}: {state} on {lease.host}: {completion.reason}")
            return False
        for record in records:
            if record.status != "ok":
                self.progress.note(f"{record.cell.id}: {record.failure}: {record.reason}")
            self.progress.advance(0.0, record.cell.id)
        self.progress.note(f"{lease.case_id}: measured on {lease.host}, {lease.device_name}")
        return True

    def _skip(self, run: Run, blocks: list[Waiting], reason: str) -> None:
        for block in blocks:
            run.note("skipped", case=block.case_id, reason=reason)
            self.progress.note(f"{block.case_id}: skipped: {reason}")


def add_saved(run: Run) -> None:
    """Add the blocks that a driver saved before it died, and that are not in the run yet."""
    journal = run.journal()
    for case_id, event in journal.leases.items():
        lease = Lease.of(event)
        if case_id not in journal.blocks and results.archive_path(run, lease).is_file():
            results.add(run, lease, results.archive_path(run, lease))
