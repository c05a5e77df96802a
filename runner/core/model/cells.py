"""What one number is about, and whether it is measured: cells, and why some are skipped."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["run", "skip"]
Device = Literal["cpu", "cuda"]
Protocol = Literal["aligned", "published"]
Precision = Literal["fp32", "tf32", "fp16", "bf16", "int8"]

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
    "processors",
    "over-budget",
    "excluded",
)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """Environment x implementation x case x phase x precision: what one number is about.

    Attributes:
        environment: id such as ``torch-1.0``.
        implementation: slug such as ``nn-lstm``.
        workload: ``rnn-step``, ``asr-lstm``, ...
        case: the workload's sizes by name, ``1x320-ce-short``.
        phase: ``compile``, ``compile-warm``, ``forward``, ``gradient`` or ``train``, of an operation ``forward``,
            ``backward-weights`` or ``backward-inputs``; with ``+published`` after it where the original program's
            choices are timed, quirks and all.
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
    """Why something is not run.

    Attributes:
        code: one of ``SKIP_CODES``.
        reason: a sentence.
        source: where the facts behind it are from; empty where it is nothing but this machine's and the user's doing.
        nearest: what would run instead: environments of the matrix, or builds that it does not have.
    """

    code: str
    reason: str
    source: str = ""
    nearest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCell:
    """A cell with its verdict.

    Attributes:
        kind: ``flexible``, ``fused`` or ``vendor``.
        seconds: the estimated cost of all its rounds.
        jit: how it runs by compiling intermediate code for the GPU, in a sentence; empty where it does not.
    """

    cell: Cell
    device: Device
    kind: str = ""
    skip: Skip | None = None
    seconds: float = 0.0
    jit: str = ""

    @property
    def verdict(self) -> Verdict:
        """``run`` or ``skip``."""
        return "run" if self.skip is None else "skip"
