"""Signals to the commands that measure for a question of their own, or that write what was measured."""

from tests.faults.fault import Fault, Kept
from tests.faults.signals import signals

COMMANDS = "Signals to other commands"
BISECT, NIGHTLY = "`runner bisect`", "`runner nightly`"
STAGES: dict[str, tuple[str, Kept, tuple[str, ...]]] = {
    "bisect-measure": (
        f"{BISECT}, while it measures",
        Kept.SEARCH,
        ("`runner bisect` measures it again", "the same command continues bisect ", ": 0 steps stored"),
    ),
    "bisect-step": (
        f"{BISECT}, between a run and its step",
        Kept.SEARCH,
        ("the same command continues bisect ", ": 0 steps stored"),
    ),
    "bisect-answer": (
        f"{BISECT}, while it stores its answer",
        Kept.SEARCH,
        ("the same command continues bisect ", ": 1 step stored"),
    ),
    "nightly-compare": (
        f"{NIGHTLY}, while it compares",
        Kept.NIGHT,
        ("the night ended while it compared with earlier runs; 4 records of 2 tests are kept in run ",),
    ),
    "nightly-history": (
        f"{NIGHTLY}, while it adds its run to the history",
        Kept.NIGHT,
        ("the night ended while it compared with earlier runs; 4 records of 2 tests are kept in run ",),
    ),
    "nightly-alert": (f"{NIGHTLY}, before it sends alerts", Kept.NIGHT_DONE, ()),
    "reproduce-measure": (
        "`runner reproduce`, while it measures",
        Kept.STORED,
        ("`runner reproduce` measures it again",),
    ),
    "history-rebuild": ("`runner history rebuild`, while it adds a run", Kept.WRITTEN, ()),
    "report-site": ("`runner report --site`, while it writes a file", Kept.WRITTEN, ()),
}
"""Stage of a command -> when that is, what is kept, and what the command prints there, in order."""


def command_faults() -> tuple[Fault, ...]:
    """Return the faults: each signal at each stage, and a second one while a command measures."""
    return tuple(
        fault
        for stage, (when, kept, lines) in STAGES.items()
        for fault in signals({stage: (when, kept)}, COMMANDS, lines, twice=stage.endswith("measure"))
    )
