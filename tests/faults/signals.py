"""The faults of signals: each signal, once and twice, at each stage of a run."""

import signal
from collections.abc import Mapping

from tests.faults.fault import Fault, Kept

STAGES = {
    "plan": ("while it plans", Kept.NOTHING),
    "build": ("before it builds", Kept.NOTHING),
    "folder": ("while it makes the run folder", Kept.NOTHING),
    "lock": ("while it waits for another run", Kept.RESUMABLE),
    "reference": ("while it computes a reference", Kept.RESUMABLE),
    "server": ("while a server imports its framework", Kept.RESUMABLE),
    "measure": ("while it measures", Kept.RESUMABLE),
    "record": ("between a record and its line in the journal", Kept.RESUMABLE),
    "report": ("while it writes the report", Kept.PAGE),
}
"""Stage of a run with the host backend -> when that is, and what is kept."""
OTHER_STAGES = {
    "venv-build": ("while pip builds a virtual environment", Kept.NOTHING),
    "docker-build": ("while the engine builds an image", Kept.NOTHING),
    "docker-measure": ("while it measures in containers", Kept.RESUMABLE),
    "further": ("in a further round", Kept.RESUMABLE),
}
CODES = {"SIGKILL": -signal.SIGKILL, "SIGTERM": 130, "SIGINT": 130, "SIGHUP": 129}
SMOKE = ("sigterm-measure", "sigkill-docker-measure")
INTERRUPTED = "Interrupted: stopping containers and processes"


def signals(
    stages: Mapping[str, tuple[str, Kept]], group: str = "Signals", lines: tuple[str, ...] = (), *, twice: bool = True
) -> list[Fault]:
    """Return the faults of signals at some stages.

    Args:
        stages: stage -> when that is, and what is kept.
        group: the heading in the documentation.
        lines: what the command prints at these stages, beside what every command prints.
        twice: whether each signal that can be handled is sent a second time, too.
    """
    return [
        Fault(
            id=f"{name.lower()}{'-twice' if number == 2 else ''}-{stage}",
            group=group,
            what=name if name == "SIGKILL" else f"{name}, once or twice" if twice else name,
            stage=when,
            exits=(code,),
            sees=() if name == "SIGKILL" else _lines(kept, lines),
            kept=kept,
            smoke=f"{name.lower()}{'-twice' if number == 2 else ''}-{stage}" in SMOKE,
        )
        for stage, (when, kept) in stages.items()
        for name, code in CODES.items()
        for number in ((1, 2) if twice and name != "SIGKILL" else (1,))
    ]


def _lines(kept: Kept, lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is printed at a stage."""
    advice = ("`runner run --resume ",) if kept is Kept.RESUMABLE else ()
    return (INTERRUPTED, *advice, *lines, "interrupted: finished results are kept")
