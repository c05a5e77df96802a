"""What the suite claims of a fault: what is broken, what the user sees, what is kept, and what is cleaned up."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Kept(Enum):
    """What is kept; the value is the sentence in the documentation, and ``checks`` holds each to it."""

    NOTHING = "nothing was measured yet; the next `runner run` measures everything"
    RESUMABLE = "every finished measurement; `runner run --resume` completes the run"
    COMPLETE = "everything: the run is complete"
    MISSING = "every finished measurement; `runner run --resume` builds the missing environment, and completes the run"
    OTHERS = "all other measurements; the run is complete, and a record holds the reason of the failure"
    FAILED = "a record with the reason for each cell of the environment; the run is complete"
    UNCHANGED = "every file of the run as it was; the journal may note the attempt"
    SEARCH = "every finished step; the same command continues the search"
    NIGHT = "every finished measurement; the next night names the one that ended, and measures everything"
    NIGHT_DONE = "the night, which is complete; the next one sends its alerts"
    STORED = "the stored run as it was; the same command measures its cell again"
    WRITTEN = "every file that was written; the same command writes the rest"
    PAGE = "the run, which is complete; `runner run --resume` or `runner report` writes the page"


CLEAN = (
    "no process, container, temporary folder or held lock is left, and no partly written file, except after SIGKILL: "
    "then a hidden file or folder may stay, which no command reads"
)
"""What every fault is held to; a declaration may add to it."""
RESUME = "`runner run --resume "
"""The start of a command in a hint; the id of the run follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault.

    Attributes:
        id: the id of the test.
        group: the heading in the documentation.
        what: what is broken.
        stage: when, to follow on ``what``; empty where that says it.
        exits: the exit codes that the command may have; negative is a signal that ends it.
        sees: parts of the lines that the command prints to stderr, in order.
        kept: what is kept.
        cleaned: what is cleaned up.
        smoke: part that CI runs.
    """

    id: str
    group: str
    what: str
    exits: tuple[int, ...]
    kept: Kept
    stage: str = ""
    sees: tuple[str, ...] = ()
    cleaned: str = CLEAN
    smoke: bool = False


def unique(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return faults as they are; raises ValueError where two have one id."""
    kept: dict[str, Fault] = {}
    for fault in faults:
        if fault.id in kept:
            raise ValueError(f"two faults are called {fault.id}")
        kept[fault.id] = fault
    return tuple(kept.values())
