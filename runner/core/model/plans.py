"""What is asked for, and what is to be measured: requests and plans."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.core.model.cells import Cell, Device, PlannedCell, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """How to measure: what every cell of a run shares.

    Attributes:
        rounds: fresh processes for each cell, at least 1.
        max_rounds: as many for cells whose verdict is open until then; fewer than ``rounds`` means no further ones.
        budget: seconds for all of it, None for as long as it takes.
        seconds: time budget of the measured iterations of one cell in one round.
        timeout: seconds after which a cell's process is killed.
        threads: CPU threads that every framework is given.
        seed: orders the cells of each round.
        restart: rounds after which the servers are replaced, so that ``server`` is a level of the statistics.
    """

    rounds: int = 3
    seconds: float = 2.0
    timeout: float = 600.0
    threads: int = 1
    seed: int = 0
    restart: int = 1
    max_rounds: int = 0
    budget: float | None = None

    @property
    def most(self) -> int:
        """The rounds that a cell can have."""
        return max(self.rounds, self.max_rounds)

    def turn(self, number: int) -> int:
        """Return which round the number of a record means: each group counts on from ``most`` of the one before."""
        return (number - 1) % self.most + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """All runnable cells of one case on one device: measured side by side and never split across devices.

    Attributes:
        held: bytes that a process holds that trains the case, about.
    """

    case_id: str
    spec: Mapping[str, Any]
    device: Device
    cells: tuple[Cell, ...]
    held: int = 0

    @property
    def chips(self) -> int:
        """How many processes compute it together, each on a GPU of its own where it is on GPUs."""
        return int(self.spec.get("chips", 1))

    @property
    def environments(self) -> tuple[str, ...]:
        """The environments the block needs alive, in order of first appearance."""
        return tuple(dict.fromkeys(cell.environment for cell in self.cells))


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a run that is resumed has behind it; all empty for a new one.

    Attributes:
        finished: (case id, round) of every round that a case has whole.
        attempts: (case id, round) -> the last attempt that left a record.
        failed: (cell, failure class) of every cell that failed, as often as it failed differently.
        servers: environment -> how many servers it has had.
        groups: device -> environments that were alive side by side on it; lacks one where that was not decided yet.
        spent: seconds that it was measured for, as far as its journal says.
    """

    finished: frozenset[tuple[str, int]] = frozenset()
    attempts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    failed: frozenset[tuple[Cell, str]] = frozenset()
    servers: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    spent: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Every cell that was asked for, with its verdict, and the runnable ones as blocks."""

    device: Device
    backend: str
    measurement: Measurement
    cells: tuple[PlannedCell, ...]
    blocks: tuple[Block, ...]
    frameworks: Mapping[str, str]
    """environment id -> framework"""
    past: Past = Past()
    devices: int = 1
    """how many share the cases"""

    @property
    def seconds(self) -> float:
        """The estimated duration of the measuring, without provisioning: of several devices, each has about as much.

        A case that wants several GPUs at once has all of them.
        """
        costs: dict[str, float] = {}
        for one in self.cells:
            if one.skip is None:
                costs[one.cell.case_id] = costs.get(one.cell.case_id, 0.0) + one.seconds
        wide = [costs.pop(block.case_id) for block in self.blocks if self.device == "cuda" and block.chips > 1]
        return sum(wide) + max(sum(costs.values()) / self.devices, max(costs.values(), default=0.0))

    @property
    def begun(self) -> int:
        """The last round of which an earlier part of the run left a record; 0 where there was none."""
        return max((self.measurement.turn(number) for _, number in self.past.attempts), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A text for language models: the name of its file, ``sha256:...`` of its bytes, and what it says."""

    name: str
    digest: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a command asks to be planned.

    Attributes:
        environments: ids, in file order.
        chosen: says of a cell id whether it is wanted; None wants all.
        workloads: names, of which a cell's workload must be one; empty for all.
        preset: name of a preset in the matrix, or None for all that the matrix lists.
        precisions: what to compute in; empty for what the matrix says.
        device: where to measure.
        devices: how many of them share the cases.
        backend: ``docker``, ``venv`` or ``host``.
        protocol: ``aligned`` or ``published``; None is what the preset says, else aligned.
        memory: bytes that a measured process may hold; 0 where that is not known.
        corpus: a text whose words language models are given; None draws words at random.
        rounds: how many; None is what the preset says. Where it is given, ``max_rounds`` is as many unless it is, too.
        budget: seconds that the measuring may take; None for as long as it takes.
        allow_jit: cells are run that a build has only intermediate code (PTX) for.
        glibc: the C library of the machine; None where it is not known.
    """

    environments: tuple[str, ...]
    chosen: Callable[[str], bool] | None = None
    workloads: tuple[str, ...] = ()
    preset: str | None = None
    precisions: tuple[str, ...] = ()
    device: Device = "cpu"
    devices: int = 1
    backend: str = "venv"
    rounds: int | None = None
    max_rounds: int | None = None
    budget: float | None = None
    seconds: float | None = None
    threads: int = 1
    seed: int = 0
    protocol: Protocol | None = None
    memory: int = 0
    corpus: Corpus | None = None
    allow_jit: bool = False
    glibc: str | None = None
