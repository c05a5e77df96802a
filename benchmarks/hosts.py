"""64 devices of other hosts, simulated: the real planner, driver and store, and workers that measure nothing.

The makespan is that of a clock which the blocks move on; the driver's cost is the processor time of this process
without that of the stand-in workers.
"""

import heapq
import random
import resource
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.table import Row
from runner.catalog.cases import CASES
from runner.core.model import Cell
from runner.plan.document import plan_document
from runner.store.run import Run
from runner.workflows.hosts.driver import Driver
from runner.workflows.hosts.executors import Completion
from runner.workflows.hosts.planning import plan_for_hosts
from runner.workflows.hosts.results import Collector
from runner.workflows.hosts.tasks import Job, Offer
from tests.support.fake_hosts import FakeHosts, block, devices, offer, plan
from tests.support.fake_runs import MACHINE, NOW

DEVICES = 64
MAX_RATIO = 1.05
CELLS = (1_000, 10_000, 100_000)
ENVIRONMENTS = ("torch-1.0", "torch-2.x")


class SimulatedHosts(FakeHosts):
    """Devices whose blocks take the seconds of the plan, on a clock of their own."""

    def __init__(self, offers: dict[str, Offer], folder: Path) -> None:
        """Start the clock at 0."""
        super().__init__(offers, folder, self.finish_later)
        self.now = self.worker_seconds = 0.0
        self.ends: list[tuple[float, int, Completion]] = []

    def finish_later(self, _key: str, job: Job, completion: Completion) -> Iterable[Completion]:
        """Let the reply arrive when the block has taken its estimated seconds."""
        seconds = sum(cell["seconds"] for cell in job.plan["cells"])
        heapq.heappush(self.ends, (self.now + seconds, len(self.jobs), completion))
        return []

    def completed(self, seconds: float) -> Iterable[Completion]:
        """Return the next reply, and move the clock on to it."""
        queued = list(super().completed(seconds))
        if queued or not self.ends:
            return queued
        self.now, _, completion = heapq.heappop(self.ends)
        return [completion]

    def measured(self, job: Job) -> bytes:
        """Return what a worker does, and count its processor time."""
        begin = time.process_time()
        try:
            return super().measured(job)
        finally:
            self.worker_seconds += time.process_time() - begin


def rows() -> Iterator[Row]:
    """Give the makespan over its lower bound, and what the driver costs for each cell."""
    for cells in CELLS:
        with tempfile.TemporaryDirectory() as folder:
            yield from _simulated(cells, Path(folder))


def _simulated(cells: int, folder: Path) -> Iterator[Row]:
    count = min(len(CASES), cells // len(ENVIRONMENTS))
    each = cells // count // len(ENVIRONMENTS)
    draw = random.Random(0)
    seconds_by_case = {case_id: draw.lognormvariate(1, 0.7) for case_id in CASES}

    def seconds(cell: Cell) -> float:
        return seconds_by_case[cell.case_id]

    blocks = [block(number, ENVIRONMENTS, each) for number in range(count)]
    executor = SimulatedHosts({}, folder)
    offered = plan(blocks, seconds)
    executor.offers = {f"{number:02d}": offer(offered, f"{number:02d}") for number in range(DEVICES)}
    begin, wall = time.process_time(), time.monotonic()
    pool = devices(executor, [], lambda: executor.now)
    host_plan = plan_for_hosts(pool.first_offers(), controls=False)
    run = Run.create(folder / "reports", plan_document(host_plan.plan), {}, MACHINE, {}, NOW)
    Driver(devices=pool, collector=Collector(run), plan=host_plan).measure()
    processor_seconds = time.process_time() - begin - executor.worker_seconds
    costs = [sum(map(seconds, each.cells)) for each in blocks]
    bound = max(sum(costs) / DEVICES, *costs)
    records = sum(1 for _ in run.journal().counting())
    assert records == 2 * sum(len(each.cells) for each in blocks), "every cell has a record of each round"
    name = f"{sum(len(each.cells) for each in blocks):,} cells in {count} blocks on {DEVICES} devices"
    ratio = executor.now / bound
    yield Row(f"makespan over its lower bound, {name}", f"{ratio:.3f}", target=f"{MAX_RATIO:g}", met=ratio <= MAX_RATIO)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    per_cell = processor_seconds / (records / 2) * 1e3
    text = f"{processor_seconds:.1f} s of processor, {per_cell:.2f} ms for a cell, {peak:.0f} MB"
    yield Row(f"driver, {name}", f"{text}, {time.monotonic() - wall:.0f} s passed")
