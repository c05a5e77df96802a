"""What one number is about, and whether it is measured: cells, and why some are skipped."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

from runner.core.errors import Problem, RecordError

Verdict = Literal["run", "skip"]
Device = Literal["cpu", "cuda"]
Protocol = Literal["aligned", "published"]
Process = Literal["fork", "plain"]
Phase = Literal["compile", "compile-warm", "forward", "gradient", "train", "backward-weights", "backward-inputs"]
Precision = Literal["fp32", "tf32", "fp16", "bf16", "int8"]

PHASE_NAMES: tuple[Phase, ...] = get_args(Phase)
OWN_PHASE = re.compile(r"(?!compile)[a-z][a-z0-9_]{0,39}")
"""Phases of a user's network: names of methods, and parts of the names of files."""


def is_own_phase(phase: str) -> bool:
    """Return True where a user's network has named a phase itself: it is a method of its class.

    >>> is_own_phase("prefill"), is_own_phase("train"), is_own_phase("train+published")
    (True, False, False)
    """
    return phase.partition("+")[0] not in PHASE_NAMES


def is_called(phase: str) -> bool:
    """Return True where a phase has many short calls. A compile is one call, and published times were taken in one go.

    >>> is_called("train"), is_called("compile-warm"), is_called("train+published")
    (True, False, False)
    """
    return not (phase.startswith("compile") or "+" in phase)


SKIP_MEANINGS: Mapping[str, str] = {
    "no-interpreter": "need a Python that is not installed here",
    "no-engine": "need a container engine",
    "image-unavailable": "need a lock or an image that is not here",
    "needs-gpu": "need a GPU",
    "framework-lacks": "need what the release does not offer",
    "precision-lacks": "need a precision that is not offered",
    "arch": "have no code for this GPU",
    "driver": "need another GPU driver",
    "no-memory": "need more memory",
    "processors": "need more CPUs",
    "over-budget": "take longer than the time-out or the budget allows",
    "excluded": "left out by the preset or the selection",
}
"""Code of a skip -> what it says of the cells and environments that have it."""
SKIP_CODES = tuple(SKIP_MEANINGS)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Cell:
    """Environment x implementation x case x phase x precision: what one number is about.

    Attributes:
        environment: id such as ``torch-1.0``.
        implementation: slug such as ``nn-lstm``.
        workload: ``rnn-step``, ``asr-lstm``, ...
        case: the workload's sizes by name, ``1x320-ce-short``.
        phase: ``compile``, ``compile-warm``, ``forward``, ``gradient`` or ``train``, of an operation ``forward``,
            ``backward-weights`` or ``backward-inputs``, of a user's network also a phase that its file names; with
            ``+published`` after it where the original program's choices are timed, quirks and all.
        precision: ``fp32``, ``tf32``, ...
    """

    environment: str
    implementation: str
    workload: str
    case: str
    phase: str
    precision: str = "fp32"

    @staticmethod
    def parse(cell_id: str) -> "Cell":
        """Return the cell of an id, ``environment/implementation/workload/case/phase/precision``.

        Raises:
            RecordError: the id has not six parts, or a part with a character that no cell has.
        """
        return _parse(cell_id)

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


def environment_of(cell_id: str) -> str:
    """Return the environment in the id of a cell.

    >>> environment_of("torch-1.0/nn-lstm/asr-lstm/1x320/train/fp32")
    'torch-1.0'
    """
    return cell_id.partition("/")[0]


def without_environment(cell_id: str) -> str:
    """Return the id of a cell without its environment: what two environments have in common.

    >>> without_environment("torch-1.0/nn-lstm/asr-lstm/1x320/train/fp32")
    'nn-lstm/asr-lstm/1x320/train/fp32'
    """
    return cell_id.partition("/")[2]


_PART = r"[A-Za-z0-9_][A-Za-z0-9_.+@=:,%-]*"
_ID = re.compile("/".join([f"({_PART})"] * 6))


@lru_cache(maxsize=1 << 15)
def _parse(cell_id: str) -> Cell:
    match = _ID.fullmatch(cell_id)
    if match is None:
        hint = "a test is environment/implementation/workload/case/phase/precision"
        raise RecordError(Problem(f"{cell_id!r} is not the id of a test", hint=hint))
    names = ("environment", "implementation", "workload", "case", "phase", "precision")
    return Cell(**dict(zip(names, match.groups(), strict=True)))


TWIN = "@twin"
"""Ends the id of the second environment of an A/A pair: the same image on a server of its own."""
PLAIN = "@plain"
"""Ends the id of an environment whose cells are measured again, each in a fresh interpreter as a user's script is."""


def is_twin(environment: str) -> bool:
    """Return True where an environment is the second of an A/A pair."""
    return environment.endswith(TWIN)


def is_plain(environment: str) -> bool:
    """Return True where an environment is the plain-process control of another."""
    return environment.endswith(PLAIN)


def is_control(environment: str) -> bool:
    """Return True where an environment repeats another one: it shows what the measuring does, and is no release."""
    return environment.endswith((TWIN, PLAIN))


def twin(cell: Cell) -> Cell:
    """Return the other cell of the A/A pair: the same, in the twin of its environment."""
    return replace(cell, environment=cell.environment + TWIN)


def plain(cell: Cell) -> Cell:
    """Return the plain-process control of a cell."""
    return replace(cell, environment=cell.environment + PLAIN)


def without_control(environment: str) -> str:
    """Return the environment that a control repeats; an environment that is no control is returned unchanged."""
    return environment.removesuffix(TWIN).removesuffix(PLAIN)


def origin(control: Cell) -> Cell:
    """Return the cell that a control repeats."""
    return replace(control, environment=without_control(control.environment))


@dataclass(frozen=True, slots=True)
class Skip:
    """Why something is not run.

    Attributes:
        code: one of ``SKIP_CODES``.
        reason: a sentence.
        source: where the facts behind it are from; empty where it is nothing but this machine's and the user's doing.
        nearest: what would run instead: environments of the matrix, or builds that it does not have.
        passing: whether an outage is the reason, which no plan stores.
    """

    code: str
    reason: str
    source: str = ""
    nearest: tuple[str, ...] = ()
    passing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCell:
    """A cell with its verdict.

    Attributes:
        kind: ``flexible``, ``fused`` or ``vendor``.
        seconds: the estimated cost of all its rounds.
        control_seconds: the same of its plain-process control, if it gets one.
        jit: how it runs by compiling intermediate code for the GPU, in a sentence; empty where it does not.
        deferred: why its case is measured last in the first round, in a sentence; empty where it is not.
    """

    cell: Cell
    device: Device
    kind: str = ""
    skip: Skip | None = None
    seconds: float = 0.0
    control_seconds: float = 0.0
    jit: str = ""
    deferred: str = ""

    @property
    def verdict(self) -> Verdict:
        """``run`` or ``skip``."""
        return "run" if self.skip is None else "skip"
