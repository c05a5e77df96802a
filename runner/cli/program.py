"""The words that start this program in the shell of the person who reads its messages.

Messages name the command ``runner``. Where the shell does not know it, or knows another one, ``console`` replaces it
by what starts this program: ``.venv/bin/runner``, or ``python -m runner``.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from runner.cli.groups import EXAMPLES

NAME = "runner"
IN_NOX = "NOX_CURRENT_SESSION"
"""The variable that nox sets; its PATH is not that of the person's shell."""
TYPED = re.compile(rf"(?<![\w./-])(?<!-m ){NAME}(?= (?:{'|'.join(EXAMPLES)})\b)(?![^`\n]*` (?:there|on)\b)")
"""The name in a command that people type here; "`runner clocks` there" and "`runner worker` on each host" are for other
hosts.
"""


def in_this_shell(text: str, program: Sequence[str]) -> str:
    """Return a message whose commands start with the words that start this program.

    >>> in_this_shell("`runner check` shows more", [".venv/bin/runner"])
    '`.venv/bin/runner check` shows more'
    """
    return TYPED.sub(lambda _: shlex.join(program), text)


def started_as(argument: str, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the words that start this program from the shell of the person who started it.

    Args:
        argument: the first of the process, ``sys.argv[0]``.
        environ: of this process.
    """
    path = Path(argument)
    if path.name == "__main__.py":
        return [_typed(Path(sys.executable), environ), "-m", NAME]
    return [_typed(path if argument else Path(NAME), environ)]


def _typed(program: Path, environ: Mapping[str, str]) -> str:
    """Return what a person types to start a program: its name where the shell knows it, else its path.

    A script that is no program of its own, and started this one, has no name that people know.
    """
    if not os.access(program, os.X_OK):
        return NAME
    known = shutil.which(program.name, path=environ.get("PATH", ""))
    if IN_NOX not in environ and known is not None and Path(known).samefile(program):
        return program.name
    try:
        relative = program.absolute().relative_to(Path.cwd())
    except ValueError:
        return str(program)
    return str(relative) if relative.parent != Path() else f"./{relative}"
