"""What `runner run` ends with: the commands that a person wants next, the most useful one first."""

import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from runner.report.check import Check
from runner.report.formatting import counted

URGENT = ("accuracy", "doctor", "tune")
"""Commands that come before the page: its numbers are wrong, or of no use."""


class NextCommand(NamedTuple):
    """A command as words, and what it is for."""

    purpose: str
    words: Sequence[str]


def next_commands(checked: Check, folder: Sequence[str], *, has_own_network: bool) -> Iterator[NextCommand]:
    """Yield what to do after a run.

    Args:
        checked: what `runner check` says of the run.
        folder: the options that name the folder of reports, if it is not the default.
        has_own_network: whether the run measured a network of the user.
    """
    words = shlex.split(checked.command)
    verb = words[1] if len(words) > 1 else ""
    page = ["runner", "open", checked.run, *folder]
    if checked.state != "finished" or verb in URGENT:
        yield NextCommand("next", words)
        if checked.counts.good:
            yield NextCommand("the page", page)
        return
    yield NextCommand("next", page)
    if verb == "run":
        count = len(checked.open)
        yield NextCommand(f"to decide {counted(count, 'open result')}" if count else "to measure again", words)
    if not has_own_network:
        yield NextCommand("your own network", ["runner", "new", "my_network.py"])


def lines(commands: Iterator[NextCommand]) -> list[str]:
    """Return the commands as lines that a shell accepts."""
    return [f"{each.purpose}: {shlex.join(each.words)}" for each in commands]
