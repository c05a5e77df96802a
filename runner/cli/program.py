"""The words that start this program in the shell of the person who reads its messages.

Messages name this program ``runner``. If that name starts nothing, or something else, in the shell of the reader,
``console`` replaces it by words that start this program: ``.venv/bin/runner``, or ``python -m runner``.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runner.cli.groups import EXAMPLES

NAME = "runner"
IN_NOX = "NOX_CURRENT_SESSION"
"""The variable that nox sets; its PATH is not that of the person's shell."""
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""An escape sequence that sets colours."""
SPACE = rf"(?: |(?:{COLOURS.pattern})* *\n *(?:{COLOURS.pattern})*)"
"""What is between two words of a command: a space, or the end of a line, where the layout broke the command."""
TYPED = re.compile(
    rf"(?P<start>{COLOURS.pattern}|(?<![\w./-]))(?<!-m\s){NAME}"
    rf"(?={SPACE}(?:{'|'.join(EXAMPLES)})\b)(?![^`]*`\s(?:there|on)\b)"
)
"""The name in a command that people type here; "`runner clocks` there" and "`runner worker` on each host" are for other
hosts. A replaced command stays as it is: ``python -m runner`` has the name behind ``-m``.
"""


def in_this_shell(text: str, program: Sequence[str]) -> str:
    """Return a message whose commands start with the words that start this program.

    >>> in_this_shell("`runner check` shows more", [".venv/bin/runner"])
    '`.venv/bin/runner check` shows more'
    """
    return TYPED.sub(lambda match: match["start"] + shlex.join(program), text)


def started_as(argument: str, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the words that start this program from the shell of the person who started it.

    Args:
        argument: the first of the process, ``sys.argv[0]``.
        environ: of this process.
    """
    path = Path(argument)
    if path.name == "__main__.py":
        return [_typed(Path(sys.executable), environ, _is_same_path), "-m", NAME]
    return [_typed(path if argument else Path(NAME), environ, _is_same_file)]


def _typed(program: Path, environ: Mapping[str, str], is_same: Callable[[str, Path], bool]) -> str:
    """Return what a person types to start a program: its name where the shell knows it, else its path.

    A file that is not executable, such as a script that calls ``cli.main()``, is not what people type: then it is the
    name ``runner``. The path is relative to the working folder if the program is below it; a deleted working folder has
    no relative paths.
    """
    if not os.access(program, os.X_OK):
        return NAME
    known = shutil.which(program.name, path=environ.get("PATH", ""))
    try:
        if IN_NOX not in environ and known is not None and is_same(known, program):
            return program.name
        relative = program.absolute().relative_to(Path.cwd())
    except (ValueError, OSError):
        return str(program)
    return str(relative) if relative.parent != Path() else f"./{relative}"


def _is_same_path(known: str, interpreter: Path) -> bool:
    """Return whether two paths are one; a link to an interpreter, as in a virtual environment, has other packages."""
    return os.path.abspath(known) == os.path.abspath(interpreter)  # noqa: PTH100  Path.resolve() follows links


def _is_same_file(known: str, script: Path) -> bool:
    """Return whether two paths lead to one file: pipx puts links to scripts into a folder that shells search."""
    return Path(known).samefile(script)
