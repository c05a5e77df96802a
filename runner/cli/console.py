"""Print and exit: results go to stdout, everything else to stderr.

No other module prints or exits, but for programs of their own: the canary, the guardian of a GPU's clocks, the float64
reference, and the line that Ctrl-C prints (``signals``). ``streams`` keeps a lost reader or a full disk from ending a
command by the way it prints.
"""

import gc
import json
import os
import re
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol, TextIO

import typer

from runner.cli import program, signals, streams
from runner.core.errors import FILE_HINTS, DamagedRunWarning, RunnerError, UsageError, file_problem
from runner.core.text import printable, without_credentials, without_label

if TYPE_CHECKING:
    from runner.core.progress import Progress

GARBAGE = (50_000, 20, 20)
"""Thresholds of Python's cycle collector. The objects of a large run live to the end of the command; with Python's own
thresholds of 700, 10 and 10, a tenth of a report's time went into looking through them again and again.
"""
_started_as = [program.NAME]
"""The words that start this program in the shell that ``end`` was called from."""


def end(app: typer.Typer) -> NoReturn:
    """Run a command line and exit."""
    streams.protect()
    _started_as[:] = program.started_as(sys.argv[0])
    gc.set_threshold(*GARBAGE)
    note_damage()
    try:
        signals.listen()
        code = run(app)
        signals.ignore()
    except KeyboardInterrupt:
        code = signals.INTERRUPTED
    signals.finish()
    if code == signals.INTERRUPTED and signals.is_starved():
        note("error: this user can start no more threads and processes\nhint: raise the limit: `ulimit -u` shows it")
        code = 1
    elif code == signals.INTERRUPTED:
        note("interrupted: finished results are kept")
        code = signals.exit_code()
    gc.freeze()  # the last collection would look through all of these objects, for a tenth of a second
    sys.exit(code)


def note_damage() -> None:
    """Print each warning about a damaged run once, as a line of its own."""
    show = warnings.showwarning

    def show_warning(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, DamagedRunWarning):
            note(f"warning: {message}")
        else:
            show(message, category, filename, lineno, file, line)

    warnings.simplefilter("once", DamagedRunWarning)
    warnings.showwarning = show_warning


def run(app: typer.Typer) -> int:
    """Run the command line, print the error if it fails, and return the exit code."""
    try:
        return app(standalone_mode=False) or 0  # typer makes 130 of a KeyboardInterrupt
    except typer.Abort:
        return signals.INTERRUPTED
    except RunnerError as error:
        return _expected(error)
    except SystemExit as error:  # typer takes every broken pipe for one of its own stdout
        return _unexpected(error) if isinstance(error.__context__, BrokenPipeError) else int(error.code or 0)
    except OSError as error:
        return _expected(error) if error.errno in FILE_HINTS else _unexpected(error)
    except Exception as error:  # noqa: BLE001  the only place where unexpected errors end
        return _unexpected(error)


def _expected(error: RunnerError | OSError) -> int:
    """Print an error for people, after its traceback if that is asked for; return the exit code."""
    if isinstance(error, OSError):
        error = RunnerError(file_problem(error, action="used"))
    if "--traceback" in sys.argv:
        import traceback

        note(traceback.format_exc())
    note(str(error))
    return error.exit_code


def _unexpected(error: BaseException) -> int:
    """Print the message of a mistyped option, or the traceback of a bug; return the exit code."""
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):  # a usage error of the option parser
        command = getattr(getattr(error, "ctx", None), "command_path", "runner")
        note(f"error: {without_label(error.format_message())}\nhint: {command} --help")
        return 2
    import traceback

    note(traceback.format_exc())
    note("this is a bug in runner: please report it with the lines above")
    return 70


def emit(text: str, output: Path | None, *, is_document: bool = False) -> None:
    """Print a result, or replace a file by it.

    A text that is printed names the commands that start this program in this shell. Files and documents, such as JSON,
    CSV and Markdown, may be read elsewhere, and name the command ``runner``.
    """
    if output is None:
        text = text if is_document else for_people(text)
        print(visible(text.rstrip("\n"), colour=colour()), flush=True)
    else:
        save(text.rstrip("\n") + "\n", output)


def agrees(question: str) -> bool:
    """Ask a person a question, and return whether they agree; without a terminal, nobody does."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    return typer.confirm(visible(question, colour=False), err=True)


def emit_path(path: Path) -> None:
    """Print the path of a file; a terminal makes it a link, by OSC 8, the escape sequence for links."""
    shown = printable(str(path))
    link = sys.stdout.isatty() and colour()
    print(f"\033]8;;{path.resolve().as_uri()}\033\\{shown}\033]8;;\033\\" if link else shown, flush=True)


def save(content: str | bytes, output: Path) -> None:
    """Write a result to a file, see ``files.write_output``.

    Raises:
        UsageError: the file cannot be written.
    """
    from runner.core.files import write_output

    try:
        write_output(output, content)
    except OSError as error:
        raise UsageError(file_problem(error)) from error


class Printable(Protocol):
    """What a command found out, for people and for programs."""

    def text(self, width: int, *, colour: bool) -> str:
        """Return it as text for a terminal with so many columns, with ANSI colours or without."""

    def json(self) -> Mapping[str, object]:
        """Return it as JSON has it."""


def show(result: Printable, format: Literal["table", "json"], output: Path | None) -> None:
    """Print a result as text or as JSON, or write it to a file."""
    if format == "json":
        emit(json_text(result.json()), output, is_document=True)
    else:
        emit(result.text(width(), colour=output is None and colour()), output)


WIDEST = 200
"""Columns beyond which lines are hard to read."""
PIPED_WIDTH = 120
"""Columns where the output is no terminal."""


def width() -> int:
    """Return the columns of the terminal, from 60 to WIDEST; PIPED_WIDTH where there is none."""
    import shutil

    columns = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns
    return max(60, min(columns, WIDEST))


def colour(stream: TextIO | None = None) -> bool:
    """Return whether a stream, by default stdout, takes colours.

    NO_COLOR (https://no-color.org) turns them off, and so does TERM=dumb; FORCE_COLOR turns them on. ``--color``
    sets one of these.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"


def choose_colour(when: Literal["auto", "always", "never"]) -> None:
    """Turn colours on or off for this process and those that it starts; ``auto`` leaves the environment as it is."""
    if when != "auto":
        os.environ["FORCE_COLOR" if when == "always" else "NO_COLOR"] = "1"
        os.environ.pop("NO_COLOR" if when == "always" else "FORCE_COLOR", None)


def note(text: str) -> None:
    """Print lines to stderr, if anybody still reads it."""
    print(visible(for_people(text), colour=colour(sys.stderr)), file=sys.stderr, flush=True)


def for_people(text: str) -> str:
    """Return a message whose commands start this program in the shell of the person who reads it."""
    return program.in_this_shell(text, _started_as)


def visible(text: str, *, colour: bool) -> str:
    """Return lines without passwords in addresses, and without what controls a terminal, but for colours if printed."""
    text = without_credentials(text)
    if not colour:
        return printable(text, multiline=True)
    parts = re.split(f"({program.COLOURS.pattern})", text)  # no other escape sequence is printed
    return "".join(part if program.COLOURS.fullmatch(part) else printable(part, multiline=True) for part in parts)


def progress() -> "Progress":
    """Return the progress display for this stderr: a live table on a terminal, else plain lines."""
    from runner.core.progress import create_progress

    live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return create_progress(note, live=live, visible=lambda text: visible(for_people(text), colour=False))


def json_text(value: Mapping[str, object]) -> str:
    """Return a result as JSON; raises ValueError for a number that JSON cannot hold."""
    return json.dumps(value, indent=1, allow_nan=False)
