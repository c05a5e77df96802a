"""Requests and plans: what a command asks for, and what is measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from runner.core.bounds import STRICT, Count, Integer, Number, Positive, RoundNumber, Seconds
from runner.core.model.cells import Cell, Device, PlannedCell, Process, Protocol, is_plain, without_control
from runner.core.model.model_files import ModelFiles
from runner.core.model.variant_ids import USUAL_LAUNCH, Launch

PLAIN_ROUNDS = 3
"""Rounds of a plain-process control that is repeated: they need an interval, and each imports the framework again."""


class Signs(NamedTuple):
    """What shows how far other programs disturbed a cell in a round; nothing of it compares two cells.

    Attributes:
        others_busy: CPUs that they kept busy meanwhile; None if it is not known.
        turns_with: the set that the cell took turns with; empty without turns.
        call_seconds: the mean time of its calls in turns; 0 without turns.
    """

    others_busy: float | None = None
    turns_with: str = ""
    call_seconds: float = 0.0


class Round(NamedTuple):
    """A round of one memory group: ``number`` counts from 1 within the group, ``group`` from 0."""

    number: int
    group: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """How to measure: what every cell of a run shares.

    Attributes:
        rounds: fresh processes for each cell, at least 1.
        max_rounds: the same for cells whose verdict is open; fewer than ``rounds`` means no extra rounds.
        budget: seconds for measuring the whole run, None without a limit.
        seconds: time budget of the measured iterations of one cell in one round.
        timeout: seconds after which a cell's process is killed.
        threads: CPU threads that every framework is given.
        seed: orders the cells of each round.
        restart: rounds after which servers are replaced.
        process: how a process that times a cell starts: ``fork`` copies a server, ``plain`` is a fresh interpreter.
    """

    __pydantic_config__ = STRICT

    rounds: Annotated[RoundNumber, Field(ge=1)] = 3
    seconds: Seconds = 2.0
    timeout: Seconds = 600.0
    threads: Positive = 1
    seed: Integer = 0
    restart: Count = 1
    max_rounds: RoundNumber = 0
    budget: Number | None = None
    process: Process = "fork"

    def planned_rounds(self, cell: Cell) -> int:
        """Return how many rounds of a cell are planned, without extra rounds; one of a plain-process control."""
        return 1 if is_plain(cell.environment) else self.rounds

    @property
    def round_limit(self) -> int:
        """The largest number of rounds that a cell can have."""
        return max(self.rounds, self.max_rounds)

    def stored_number(self, of: Round) -> int:
        """Return the number that records and the journal have for a round: group g stores round r as r + g * limit."""
        return of.number + of.group * self.round_limit

    def round_of(self, stored_number: int) -> Round:
        """Decode a stored round number."""
        group, index = divmod(stored_number - 1, self.round_limit)
        return Round(index + 1, group)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """All runnable cells of one case: measured side by side on one device, never split across devices.

    Attributes:
        memory_bytes: about how much memory a process holds that trains the case.
    """

    case_id: str
    spec: Mapping[str, Any]
    device: Device
    cells: tuple[Cell, ...]
    memory_bytes: int = 0

    @property
    def chips(self) -> int:
        """How many processes compute the case together, each on a GPU of its own where there are GPUs."""
        return int(self.spec.get("chips", 1))

    @property
    def environments(self) -> tuple[str, ...]:
        """The environments the block needs alive, in order of first appearance."""
        return tuple(dict.fromkeys(cell.environment for cell in self.cells))


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a resumed run has measured already; all empty for a new one.

    Attributes:
        finished: (case id, stored round number) of every round that a case has completely.
        attempts: (case id, stored round number) -> the last attempt that left a record.
        failed: (cell, failure class) of every cell that failed, once for each class.
        servers: environment -> how many servers it had.
        groups: device -> groups of environments that are alive together; no entry where that was not decided yet.
        elapsed: seconds that the run was measured for, as its journal says.
        batches: (cell, stored round number) -> how many calls its samples had, where a GPU's times decided that.
        seconds: cell -> seconds that it took in its last good round; without cells that have none.
        signs: (cell, stored round number) -> the attempt that counts, and how far it was disturbed; of good records.
        disturbed: (cell, stored round number, attempt) of every record that is marked as disturbed.
    """

    finished: frozenset[tuple[str, int]] = frozenset()
    attempts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    failed: frozenset[tuple[Cell, str]] = frozenset()
    servers: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    elapsed: float = 0.0
    batches: Mapping[tuple[Cell, int], int] = field(default_factory=dict)
    seconds: Mapping[Cell, float] = field(default_factory=dict)
    signs: Mapping[tuple[Cell, int], tuple[int, Signs]] = field(default_factory=dict)
    disturbed: frozenset[tuple[Cell, int, int]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Every selected cell with its verdict, and the runnable ones as blocks."""

    device: Device
    backend: str
    measurement: Measurement
    cells: tuple[PlannedCell, ...]
    blocks: tuple[Block, ...]
    frameworks: Mapping[str, str]
    """environment id -> framework"""
    past: Past = Past()
    devices: int = 1
    """How many devices share the cases."""
    models: Mapping[str, ModelFiles] = field(default_factory=dict)
    """digest -> the files of a user's network; the ``files`` of a case's specification is such a digest."""

    launches: Mapping[str, Launch] = field(default_factory=dict)
    """environment id -> how its processes are started; without those that are started as all others."""

    def launch_of(self, environment: str) -> Launch:
        """Return how the processes of an environment are started; a control is started as what it repeats."""
        return self.launches.get(without_control(environment), USUAL_LAUNCH)

    def threads_of(self, environment: str) -> int:
        """Return how many CPU threads an environment is given."""
        return self.launch_of(environment).threads or self.measurement.threads

    @property
    def seconds(self) -> float:
        """The estimated seconds of measuring, without provisioning; cases are shared evenly between devices.

        Deferred cells are left out: whether they are measured depends on what the others take.
        A case of several GPUs has all of them to itself.
        """
        costs: dict[str, float] = {}
        for planned in self.cells:
            if planned.skip is None and not planned.deferred:
                costs[planned.cell.case_id] = costs.get(planned.cell.case_id, 0.0) + planned.seconds
        wide = [costs.pop(block.case_id, 0.0) for block in self.blocks if self.device == "cuda" and block.chips > 1]
        return sum(wide) + max(sum(costs.values()) / self.devices, max(costs.values(), default=0.0))

    @property
    def round_seconds(self) -> Mapping[Cell, float]:
        """The estimated seconds of one round of each cell that runs, its check shared by its planned rounds."""
        running = [planned for planned in self.cells if planned.skip is None]
        return {each.cell: each.seconds / self.measurement.planned_rounds(each.cell) for each in running}

    @property
    def last_started_round(self) -> int:
        """The last round of which an earlier part of the run left a record; 0 where there is none."""
        return max((self.measurement.round_of(number).number for _, number in self.past.attempts), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A text for language models: the name of its file, ``sha256:...`` of its bytes, and the text itself."""

    name: str
    digest: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a command asks the planner for.

    Attributes:
        environments: ids, in the order of the selectors; the first of a framework is the base of its others.
        named: those of them that a selector names by their id, and not by a glob or a range.
        bases: environments of which the cells are measured that another environment of their framework has.
        chosen: returns True for the id of a selected cell; None selects all.
        cell_selectors: globs over cell ids that ``chosen`` stands for, as the user wrote them.
        workloads: names of the selected workloads; empty for all.
        preset: name of a preset of the matrix; None selects all that the matrix lists.
        phases: the selected phases; empty for those of the matrix.
        precisions: the selected precisions; empty for those of the matrix.
        device: where to measure.
        devices: how many devices share the cases.
        backend: ``docker``, ``venv`` or ``host``.
        protocol: ``aligned`` or ``published``; None takes the preset's, else aligned.
        memory: bytes that a measured process may hold; 0 where unknown.
        corpus: a text whose words language models learn; None draws words at random.
        rounds: rounds of each cell; None takes the preset's. It is also ``max_rounds`` unless that is given.
        budget: seconds for measuring the whole run; None without a limit.
        process: how processes that time a cell start; None takes that of the matrix.
        allow_jit: run cells for which a build has only intermediate code (PTX).
        glibc: the version of the machine's GNU C library; None where unknown.
    """

    environments: tuple[str, ...]
    named: frozenset[str] = frozenset()
    bases: tuple[str, ...] = ()
    chosen: Callable[[str], bool] | None = None
    cell_selectors: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    preset: str | None = None
    phases: tuple[str, ...] = ()
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
    process: Process | None = None
    protocol: Protocol | None = None
    memory: int = 0
    corpus: Corpus | None = None
    allow_jit: bool = False
    glibc: str | None = None
