"""Devices of other hosts that live in memory: an executor whose workers return run folders without measuring."""

import random
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from runner.catalog.cases import CASES
from runner.core.errors import EngineError, Problem
from runner.core.model import Block, Cell, Measurement, Past, Plan, PlannedCell
from runner.core.progress import Progress
from runner.hosts import tasks
from runner.hosts.executors import Completion
from runner.hosts.remote_devices import Devices
from runner.hosts.tasks import BlockJob, Inquiry, Offer
from runner.hosts.work import archive
from runner.plan.document import plan_document, read_plan
from runner.store.run import Run
from tests.support.fake_runs import MACHINE, NOW, good

ROUNDS = 2
KIND = "GPU of a kind"


def block(number: int, environments: Iterable[str] = ("torch-1.0", "torch-2.x"), cells: int = 1) -> Block:
    """Return a block with ``cells`` cells of each environment."""
    spec = CASES[case_id(number)]
    phases = [f"phase{index}" if index else "train" for index in range(cells)]
    members = tuple(
        Cell(environment=name, implementation="nn-lstm", workload=spec["workload"], case=spec["name"], phase=phase)
        for name in environments
        for phase in phases
    )
    return Block(case_id=case_id(number), spec=dict(spec), device="cpu", cells=members)


def case_id(number: int) -> str:
    """Return the id of the case of a block."""
    return tuple(CASES)[number]


def plan(blocks: Iterable[Block], seconds: Callable[[Cell], float] = lambda _: 1.0) -> Plan:
    """Return a plan in which all cells of some blocks run; ``seconds`` estimates all rounds of a cell."""
    blocks = tuple(blocks)
    cells = tuple(
        PlannedCell(cell=cell, device="cpu", kind="vendor", seconds=seconds(cell))
        for each in blocks
        for cell in each.cells
    )
    return Plan(
        device="cpu",
        backend="venv",
        measurement=Measurement(rounds=ROUNDS, max_rounds=ROUNDS),
        cells=cells,
        blocks=blocks,
        frameworks={cell.cell.environment: "torch" for cell in cells},
    )


def offer(plan: Plan, key: str, kind: str = KIND, **changes: Any) -> Offer:
    """Return what a device offers that runs a plan."""
    fields = {"host": f"host-{key}", "device": key, "device_name": kind, "driver": None, **changes}
    measurement = {name: getattr(plan.measurement, name) for name in Measurement.__slots__}
    cases = {block.case_id: block.spec for block in plan.blocks}
    return Offer(plan=plan_document(plan), cases=cases, measurement=measurement, **fields)


class FakeHosts:
    """An Executor: each device answers inquiries with its offer, and jobs as ``act`` says.

    ``act(key, job, reply)`` returns the completions that the job leads to; by default the reply alone.
    """

    def __init__(
        self, offers: Mapping[str, Offer], folder: Path, act: Callable[..., Iterable[Completion]] | None = None
    ) -> None:
        """Offer devices by key; blocks are made below ``folder``."""
        self.offers = dict(offers)
        self.folder = folder
        self.act = act or (lambda _key, _job, completion: [completion])
        self.queue: deque[Completion] = deque()
        self.jobs: list[tuple[str, str]] = []
        self.gone = False
        self.busy: set[str] = set()

    def devices(self) -> Mapping[str, str]:
        """See Executor."""
        if self.gone:
            raise EngineError(Problem("the scheduler is gone"))
        return dict.fromkeys(self.offers, "cpu")

    def submit(self, key: str, task: bytes, avoid: Collection[str] = ()) -> None:  # noqa: ARG002  the protocol's
        """See Executor."""
        assert key not in self.busy, "a device has one task at a time"
        content = tasks.decode(task)
        if isinstance(content, Inquiry):
            self.queue.append(Completion(key, tasks.reply(tasks.encode(self.offers[key]), content.token)))
            return
        assert isinstance(content, BlockJob)
        self.jobs.append((key, content.case_id))
        self.queue.extend(self.act(key, content, Completion(key, tasks.reply(self.measured(content), content.token))))

    def completed(self, seconds: float) -> Iterable[Completion]:  # noqa: ARG002  the protocol's
        """See Executor."""
        if self.gone:
            raise EngineError(Problem("the scheduler is gone"))
        completions, self.queue = list(self.queue), deque()
        return completions

    def uncollected(self, run: str) -> Iterable[bytes]:  # noqa: ARG002  the protocol's
        """See Executor."""
        return ()

    def close(self) -> None:
        """See Executor."""

    def measured(self, job: BlockJob) -> bytes:
        """Return the run folder of a block whose cells all take a millisecond."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            part = read_plan(job.plan, job.cases, Measurement(**job.measurement), Past())
            stored = Run.create(Path(folder), job.plan, job.cases, MACHINE, {}, NOW)
            for number in range(1, ROUNDS + 1):
                for cell in part.blocks[0].cells:
                    stored.add(good(cell, number, [0.001, 0.001], run=stored.id))
                stored.note("canary", case=job.case_id, round=number, seconds=0.01)
                stored.note("round", case=job.case_id, round=number)
                stored.note("times", device="cpu", round=number, seconds={"measuring": 1.0})
            stored.write_environments({name: {"digest": "sha256:" + name} for name in part.frameworks})
            return archive(stored)


def devices(executor: FakeHosts, notes: list[str], clock: Callable[[], float] = lambda: 0.0) -> Devices:
    """Return the devices of a stand-in; what is said goes to ``notes``."""
    return Devices(executor=executor, project=b"", options={}, progress=Progress(notes.append), clock=clock)


class UnreliableHosts:
    """What ``FakeHosts.act`` takes: workers that are lost, or return their block late, or twice, or damaged."""

    def __init__(self, draw: random.Random, share: float = 0.4) -> None:
        """Fail a share of the jobs, as ``draw`` says."""
        self.draw = draw
        self.share = share
        self.late: list[bytes] = []

    def __call__(self, key: str, job: BlockJob, completion: Completion) -> list[Completion]:
        """Return the completions of a job."""
        if self.draw.random() > self.share:
            return [completion, *self._late(key)]
        kind = self.draw.choice(("lost", "twice", "late", "damaged", "refused"))
        if kind == "twice":
            return [completion, completion]
        if kind == "late":
            assert completion.result is not None
            self.late.append(completion.result)
        if kind == "damaged":
            assert completion.result is not None
            return [Completion(key, completion.result[: self.draw.randrange(60, len(completion.result))])]
        if kind == "refused":
            return [Completion(key, tasks.refusal("the disk is full", job.token))]
        return [Completion(key, reason="the worker has left the scheduler", lost=True), *self._late(key)]

    def _late(self, key: str) -> list[Completion]:
        late, self.late = self.late, []
        return [Completion(key, result) for result in late]
