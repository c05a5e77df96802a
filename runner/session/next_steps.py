"""What `runner run` ends with: the commands that a person wants next, the most useful one first."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from runner.report.check import Check
from runner.report.formatting import counted

URGENT = ("accuracy", "doctor", "tune")
"""Commands that come before the page: its numbers are wrong, or of no use."""
IN_NOX = "NOX_CURRENT_SESSION"
"""The variable that nox sets; its PATH is not that of the person's shell."""


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


def lines(commands: Iterator[NextCommand], program: Sequence[str]) -> list[str]:
    """Return the commands as lines that a shell accepts, with the words that start this program."""
    return [f"{each.purpose}: {shlex.join([*program, *each.words[1:]])}" for each in commands]


def started_as(argument: str, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the words that start this program from the shell of the person who started it.

    Args:
        argument: the first of the process, ``sys.argv[0]``.
        environ: of this process.
    """
    path = Path(argument)
    if path.name == "__main__.py":
        return [_typed(Path(sys.executable), environ), "-m", "runner"]
    return [_typed(path if argument else Path("runner"), environ)]


def _typed(program: Path, environ: Mapping[str, str]) -> str:
    """Return what a person types to start a program: its name where the shell knows it, else its path."""
    if not program.exists():
        return program.name
    known = shutil.which(program.name, path=environ.get("PATH", ""))
    if IN_NOX not in environ and known is not None and Path(known).samefile(program):
        return program.name
    try:
        relative = program.absolute().relative_to(Path.cwd())
    except ValueError:
        return str(program)
    return str(relative) if relative.parent != Path() else f"./{relative}"
