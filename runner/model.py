"""The values that travel between the stages: frozen, complete, and unable to touch the machine.

Numbers are in seconds and bytes everywhere; scaling happens where text is made.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Verdict = Literal["run", "skip"]
Device = Literal["cpu", "cuda"]
Protocol = Literal["aligned", "published"]

SKIP_CODES = (
    "no-interpreter",
    "no-engine",
    "image-unavailable",
    "needs-gpu",
    "framework-lacks",
    "precision-lacks",
    "arch",
    "driver",
    "no-memory",
    "over-budget",
    "excluded",
)
FAILURE_CLASSES = (
    "image-build",
    "image-pull",
    "import",
    "arch",
    "oom",
    "nan",
    "wrong-result",
    "timeout",
    "crash",
    "engine",
    "device",
)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """Environment x implementation x case x phase x precision: what one number is about.

    Attributes:
        environment: id such as ``torch-1.0``.
        implementation: slug such as ``nn-lstm``.
        workload: ``rnn-step``, ``asr-lstm``, ...
        case: the workload's sizes by name, ``1x320-ce-short``.
        phase: ``compile``, ``compile-warm``, ``forward``, ``gradient`` or ``train``; with ``+published`` after it where
            the original program's choices are timed, quirks and all.
        precision: ``fp32``, ``tf32``, ...
    """

    environment: str
    implementation: str
    workload: str
    case: str
    phase: str
    precision: str = "fp32"

    @property
    def id(self) -> str:
        """The cell's name in selections, logs, files and reports."""
        return f"{self.environment}/{self.implementation}/{self.case_id}/{self.phase}/{self.precision}"

    @property
    def protocol(self) -> str:
        """``aligned``, or ``published``."""
        return self.phase.partition("+")[2] or "aligned"

    @property
    def case_id(self) -> str:
        """``workload/case``."""
        return f"{self.workload}/{self.case}"


@dataclass(frozen=True, slots=True)
class Skip:
    """Why something is not run: one of ``SKIP_CODES`` and a sentence."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCell:
    """A cell with its verdict.

    Attributes:
        kind: ``flexible``, ``fused`` or ``vendor``.
        seconds: the estimated cost of all its rounds.
    """

    cell: Cell
    device: Device
    kind: str = ""
    skip: Skip | None = None
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """``run`` or ``skip``."""
        return "run" if self.skip is None else "skip"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """All runnable cells of one case on one device: measured side by side and never split across devices."""

    case_id: str
    spec: Mapping[str, Any]
    device: Device
    cells: tuple[Cell, ...]

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
        groups: environments that were alive side by side; empty where that was not decided yet.
    """

    finished: frozenset[tuple[str, int]] = frozenset()
    attempts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    failed: frozenset[tuple[Cell, str]] = frozenset()
    servers: Mapping[str, int] = field(default_factory=dict)
    groups: tuple[tuple[str, ...], ...] = ()


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

    @property
    def seconds(self) -> float:
        """The estimated duration of the measuring, without provisioning."""
        return sum(planned.seconds for planned in self.cells if planned.skip is None)


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
        device: where to measure.
        backend: ``docker``, ``venv`` or ``host``.
        protocol: ``aligned`` or ``published``; None is what the preset says, else aligned.
        memory: bytes that a measured process may hold; 0 where that is not known.
        corpus: a text whose words language models are given; None draws words at random.
        rounds: how many; None is what the preset says. Where it is given, ``max_rounds`` is as many unless it is, too.
        budget: seconds that the measuring may take; None for as long as it takes.
    """

    environments: tuple[str, ...]
    chosen: Callable[[str], bool] | None = None
    workloads: tuple[str, ...] = ()
    preset: str | None = None
    device: Device = "cpu"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU as the driver names it: compute capability as (major, minor), memory in bytes, 0 where it is not known."""

    uuid: str
    name: str
    capability: tuple[int, int]
    driver: str
    memory: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the server answered for one cell in one round, with the facts of that server."""

    cell: Cell
    round: int
    attempt: int = 1
    reply: Mapping[str, Any]
    facts: Mapping[str, Any]
    ready: "Provisioned"


@dataclass(frozen=True, slots=True)
class Grouped:
    """Which environments are alive side by side was decided; each group holds the base."""

    groups: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """A case has the whole of a round."""

    case_id: str
    round: int


@dataclass(frozen=True, slots=True)
class Further:
    """A further round was decided on, for these cells, whose verdicts are open."""

    round: int
    cells: frozenset[Cell]


@dataclass(frozen=True, slots=True)
class Canary:
    """What a fixed product took, in seconds, before the cells of a case in a round."""

    case_id: str
    round: int
    seconds: float


Event = Outcome | Grouped | Finished | Further | Canary
"""What happens while cells are measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioned:
    """An environment that is ready to start: a digest to record, and what its backend needs to start it.

    Attributes:
        handle: an image id (docker) or the path of an interpreter (venv, host).
        digest: what pins the content: the image id, or the hash of the lock and the interpreter.
        seconds: what provisioning took; ``cached`` says that nothing had to be made.
    """

    environment: str
    framework: str
    handle: str
    digest: str
    seconds: float
    cached: bool
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What one cell left behind in one round, however it ended.

    Attributes:
        seconds: one value per measured iteration, in order; never empty when ``status`` is ``ok``.
        warmup: the iterations before them, in order.
        compile_seconds: from before the model was built to the end of the first step; None where it was not reached.
        loss: the loss before each of the three checked training steps, and ``reference_loss`` the same in float64.
        facts: versions, device, threads, backend, digest, errors against the reference, harness version.
    """

    cell: Cell
    run: str
    round: int
    attempt: int = 1
    status: Literal["ok", "failed"]
    failure: str | None = None
    reason: str | None = None
    seconds: tuple[float, ...] = ()
    warmup: tuple[float, ...] = ()
    compile_seconds: float | None = None
    loss: tuple[float | None, ...] = ()
    reference_loss: tuple[float | None, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """An environment as one backend is asked to make it, for one device.

    Attributes:
        environment: id in matrix.yaml.
        python: ``3.6``; None where an image brings its own.
        image: an image to pull, or None to build from ``base`` and ``lock``.
        lock: absolute path of a requirements file with hashes; None where none was made yet.
        download: bytes to fetch for a first provisioning; 0 where unknown. ``disk`` likewise what it takes.
    """

    environment: str
    framework: str
    release: str
    python: str | None = None
    image: str | None = None
    base: str | None = None
    lock: Path | None = None
    download: int = 0
    disk: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a backend finds before anything is fetched.

    Attributes:
        skips: environments that cannot be had here, with the reason.
        cached: environments for which nothing has to be made.
        free: bytes of room where the new ones would go.
        images: what a new one is made from, by name: where it is, ``here`` or ``registry``, or why it cannot be had.
    """

    skips: Mapping[str, Skip] = field(default_factory=dict)
    cached: frozenset[str] = frozenset()
    free: int = 0
    images: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Something this program made that may go.

    Attributes:
        kind: ``container``, ``image``, ``volume``, ``venv``, ``cache``, ``reference`` or ``folder``.
        name: what the engine calls it, or its path.
        reason: why nothing needs it.
        size: bytes that come free, as far as they are its own.
    """

    kind: str
    name: str
    reason: str
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a server and its children may use.

    Attributes:
        memory: bytes of resident memory for a server with its child.
        device: ``cpu``, or the UUID of a GPU.
        run: id of the run, which names and labels what is started.
    """

    memory: int
    device: str = "cpu"
    run: str = "run"
