"""docs/faults.md: what the fault suite holds the program to, as tables."""

import itertools
import signal
from collections.abc import Iterable, Sequence

from tests.faults.declared import FAULTS
from tests.faults.fault import CLEAN, Fault

INTRODUCTION = f"""\
# Faults

`python3 -m nox -s faults` runs the real program and breaks it, in each of the {len(FAULTS)} ways below. It asserts \
the exit code and the lines in the second column, resumes what is kept to its end, and looks for what is left behind. \
In every row, {CLEAN}; the last column says what else is true of it. [Errors](errors.md) explains the exit codes."""


def page() -> str:
    """Return the page."""
    groups = itertools.groupby(FAULTS, key=lambda fault: fault.group)
    return "\n\n".join([INTRODUCTION, *(_section(name, tuple(faults)) for name, faults in groups)]) + "\n"


def _section(name: str, faults: Sequence[Fault]) -> str:
    """Return a heading and a table; faults that differ in their stage alone share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for fault in faults:
        key = (fault.what, _seen(fault), fault.kept.value, fault.cleaned.removeprefix(CLEAN).lstrip(";, "))
        rows.setdefault(key, []).append(fault.stage)
    lines = ["| fault | you see | kept | cleaned |", "|---|---|---|---|"]
    for (what, *facts), stages in rows.items():
        when = "; ".join(dict.fromkeys(filter(None, stages)))
        lines.append(f"| {' | '.join([what + (f', {when}' if when else ''), *facts])} |")
    return f"## {name}\n\n" + "\n".join(lines)


def _seen(fault: Fault) -> str:
    """Return what a user sees: the exit code, and the lines."""
    lines = [_code(sentence) for sentence in fault.sees if sentence]
    return "; ".join([" or ".join(map(_exit, fault.exits)), *lines])


def _exit(code: int) -> str:
    """Return an exit code in words."""
    return f"exit {code}" if code >= 0 else f"ended by {signal.Signals(-code).name}"


def _code(sentence: str) -> str:
    """Return a printed line as code in a table."""
    text = sentence.strip().replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def counts(faults: Iterable[Fault] = FAULTS) -> dict[str, int]:
    """Return the number of faults in each group."""
    return {name: len(list(each)) for name, each in itertools.groupby(faults, key=lambda fault: fault.group)}
