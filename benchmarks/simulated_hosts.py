"""The hosts of a simulation, in a process of their own: devices whose blocks take time on a clock, and measure nothing.

A block takes its estimate times a factor, log-normal with a standard deviation of ``NOISE``.
"""

import heapq
import json
import os
import random
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path

from runner.catalog.cases import CASES
from runner.core.model import Block, Cell, Plan, Skip
from runner.hosts import tasks
from runner.hosts.executors import Completion
from runner.hosts.tasks import BlockJob, Inquiry, Offer
from runner.hosts.waiting import WaitingBlock
from tests.support.fake_hosts import FakeHosts, offer, plan
from tests.support.makespan import lower_bound

NOISE = 0.2
"""Standard deviation of the logarithm of a block's time over its estimate."""
ENVIRONMENTS = ("torch-1.0", "torch-2.x")
LATER = "later-"
"""Begins the key of a device that joins after the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is simulated.

    Attributes:
        name: in the table.
        cells: of the plan.
        blocks: of the plan; the catalogue has 736 cases, and more blocks are networks of a user.
        devices: kind -> how many.
        speeds: kind -> how fast, relative to the estimates of another one.
        only: kind -> the share of the blocks of which other kinds run one environment alone.
        tail: the standard deviation of the logarithm of a block's estimate.
        lost: how many devices are lost at random times; as many others join at random times.
    """

    name: str = ""
    cells: int = 10_000
    blocks: int = 736
    devices: Mapping[str, int] = field(default_factory=lambda: {"GPU": 64})
    speeds: Mapping[str, float] = field(default_factory=lambda: {"GPU": 1.0})
    only: Mapping[str, float] = field(default_factory=dict)
    tail: float = 0.7
    lost: int = 0


class Simulation:
    """The blocks of a scenario, what each kind of device runs of them, and when devices come and go."""

    def __init__(self, scenario: Scenario) -> None:
        """Draw everything; equal scenarios give equal simulations."""
        draw = random.Random(0)
        self.scenario = scenario
        self.work: dict[str, float] = {}
        self.factors: dict[str, float] = {}
        self.only: dict[str, str] = {}
        self.blocks: list[Block] = []
        for number in range(scenario.blocks):
            block = _block(number, scenario)
            self.blocks.append(block)
            self.work[block.case_id] = draw.lognormvariate(4, scenario.tail)
            self.factors[block.case_id] = draw.lognormvariate(0, NOISE)
            share = draw.random()
            for kind, part in scenario.only.items():
                if 0 <= share < part:
                    self.only[block.case_id] = kind
                share -= part
        expected = sum(self.work.values()) / sum(scenario.devices.values())
        keys = [key for key, _ in self.keys()]
        self.leaving = {key: draw.uniform(0, expected) for key in draw.sample(keys, scenario.lost)}
        self.joining = {f"{LATER}{number}": draw.uniform(0, expected) for number in range(scenario.lost)}

    def keys(self) -> Iterator[tuple[str, str]]:
        """Yield (key, kind) of the devices that are there from the start."""
        for kind, count in self.scenario.devices.items():
            yield from ((f"{kind}-{number:02d}", kind) for number in range(count))

    def seconds(self, case_id: str, kind: str) -> float:
        """Return how long a block takes."""
        return self.work[case_id] * self.factors[case_id] / self.scenario.speeds[kind]

    def plan(self, kind: str) -> Plan:
        """Return what a kind of device would measure."""

        def seconds(cell: Cell) -> float:
            cells = self.scenario.cells / self.scenario.blocks
            return self.work[cell.case_id] / self.scenario.speeds[kind] / cells

        everything = plan(self.blocks, seconds)
        lacking = {case_id for case_id, other in self.only.items() if other != kind}
        skip = Skip("arch", "the release has no kernels for this GPU")
        skipped = [
            planned.cell.case_id in lacking and planned.cell.environment == ENVIRONMENTS[0]
            for planned in everything.cells
        ]
        cells = (
            replace(each, skip=skip) if is_skipped else each
            for each, is_skipped in zip(everything.cells, skipped, strict=True)
        )
        return replace(everything, cells=tuple(cells))

    def bound(self) -> float:
        """Return the seconds that no plan can go below; devices work from when they join until they are lost."""
        devices, speeds = self.scenario.devices, self.scenario.speeds
        blocks = [
            WaitingBlock(
                case_id=case_id,
                seconds={kind: self.seconds(case_id, kind) for kind in devices if kind == self.only.get(case_id, kind)},
            )
            for case_id in self.work
        ]
        bound = lower_bound(blocks, devices, speeds)
        if not self.leaving:
            return bound
        work, now, working = sum(block.seconds["GPU"] for block in blocks), 0.0, devices["GPU"]
        changes = [(time, -1) for time in self.leaving.values()] + [(time, 1) for time in self.joining.values()]
        for then, change in sorted(changes):
            work, now, working = work - working * (then - now), then, working + change
        return max(now + work / working, *(block.seconds["GPU"] for block in blocks))


def _block(number: int, scenario: Scenario) -> Block:
    """Return a block of as many cells as the others, within one: half of each environment."""
    cases = tuple(CASES)
    workload, name = cases[number].split("/", 1) if number < len(cases) else ("network", f"size-{number}")
    spec = CASES[cases[number]] if number < len(cases) else {"workload": workload, "name": name}
    count = (number + 1) * scenario.cells // scenario.blocks - number * scenario.cells // scenario.blocks
    cells = tuple(
        Cell(
            environment=ENVIRONMENTS[index % 2],
            implementation="nn-lstm",
            workload=workload,
            case=name,
            phase=f"phase{index // 2}" if index > 1 else "train",
        )
        for index in range(count)
    )
    return Block(case_id=f"{workload}/{name}", spec=dict(spec), device="cpu", cells=cells)


class SimulatedHosts(FakeHosts):
    """Devices whose blocks take the seconds of a simulation, on a clock of their own."""

    def __init__(self, simulation: Simulation, folder: Path) -> None:
        """Start the clock at 0."""
        super().__init__({}, folder, self._finish_later)
        self.simulation = simulation
        self.kinds = dict(simulation.keys())
        self.present = set(self.kinds)
        self.encoded = {kind: _encoded(simulation.plan(kind), kind) for kind in simulation.scenario.devices}
        self.now = 0.0
        self.tokens: dict[str, str] = {}
        self.repeated = 0
        self.events: list[tuple[float, int, str, Completion | None]] = []
        for key, then in (simulation.leaving | simulation.joining).items():
            self._add(then, key, None)

    def _add(self, then: float, key: str, completion: Completion | None) -> None:
        heapq.heappush(self.events, (then, len(self.jobs) + len(self.events) * 1_000_000, key, completion))

    def devices(self) -> Mapping[str, str]:
        """See Executor."""
        return dict.fromkeys(self.present, "cpu")

    def submit(self, key: str, task: bytes, avoid: Collection[str] = ()) -> None:  # noqa: ARG002  the protocol's
        """See Executor; equal offers are encoded once."""
        content = tasks.decode(task)
        self.tokens[key] = "" if isinstance(content, Offer) else content.token
        if isinstance(content, Inquiry):
            encoded = self.encoded[self.kinds[key]].replace(b"host-KEY", f"host-{key}".encode(), 1)
            reply = tasks.reply(encoded.replace(b'"KEY"', json.dumps(key).encode(), 1), content.token)
            self.queue.append(Completion(key, reply))
            return
        super().submit(key, task)

    def _finish_later(self, key: str, job: BlockJob, completion: Completion) -> Iterable[Completion]:
        self._add(self.now + self.simulation.seconds(job.case_id, self.kinds[key]), key, completion)
        self.repeated += job.lease > 1
        return []

    def completed(self, seconds: float) -> Iterable[Completion]:
        """Return the next replies, and move the clock on to them."""
        if self.queue:
            return [self.queue.popleft()]
        if not self.events:
            self.now += seconds
            return []
        self.now, _, key, completion = heapq.heappop(self.events)
        if completion is not None:
            is_current = tasks.token_of(completion.result or b"") == self.tokens.get(key)
            return [completion] if is_current and key in self.present else []
        if key.startswith(LATER):
            self.kinds[key] = next(iter(self.simulation.scenario.devices))
            self.present.add(key)
            return []
        self.present.discard(key)
        return [Completion(key, reason="the worker has left the scheduler", lost=True)]


def _encoded(everything: Plan, kind: str) -> bytes:
    return tasks.encode(offer(everything, "KEY", kind))


def serve(scenario: Scenario, folder: Path, pipe: Connection) -> None:
    """Be the hosts, until the driver's end of the pipe is closed; nothing that they write has to last."""
    os.fsync = lambda _: None  # type: ignore[assignment]
    hosts = SimulatedHosts(Simulation(scenario), folder)
    while True:
        try:
            method, *arguments = pipe.recv()
        except EOFError:
            return
        if method == "submit":
            hosts.submit(*arguments)
        elif method == "devices":
            pipe.send(hosts.devices())
        else:
            pipe.send((list(hosts.completed(*arguments)), hosts.now, hosts.repeated))


class Remote:
    """An Executor whose devices are in another process."""

    def __init__(self, pipe: Connection) -> None:
        """Take an end of a pipe; the other is that of ``serve``."""
        self.pipe = pipe
        self.now = 0.0
        self.repeated = 0

    def devices(self) -> Mapping[str, str]:
        """See Executor."""
        self.pipe.send(("devices",))
        devices: Mapping[str, str] = self.pipe.recv()
        return devices

    def submit(self, key: str, task: bytes, avoid: Collection[str] = ()) -> None:  # noqa: ARG002  the protocol's
        """See Executor."""
        self.pipe.send(("submit", key, task))

    def completed(self, seconds: float) -> Iterable[Completion]:
        """See Executor."""
        self.pipe.send(("completed", seconds))
        completions: list[Completion]
        completions, self.now, self.repeated = self.pipe.recv()
        return completions

    def uncollected(self, run: str) -> Iterable[bytes]:  # noqa: ARG002  the protocol's
        """See Executor."""
        return ()

    def close(self) -> None:
        """See Executor."""
