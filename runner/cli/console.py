"""Print and exit: results go to stdout, everything else to stderr.

No other module prints or exits, but for programs of their own: the canary, the guardian of a GPU's clocks, the float64
reference, and the line that Ctrl-C prints (``signals``).
"""

import gc
import json
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol, TextIO

import typer

from runner.cli import signals
from runner.core.errors import DamagedRunWarning, Problem, RunnerError, UsageError

if TYPE_CHECKING:
    from runner.core.progress import Progress

INTERRUPTED = 130  # 128 + SIGINT
GARBAGE = (50_000, 20, 20)
"""Thresholds of Python's cycle collector. The objects of a large run live to the end of the command; with Python's own
thresholds of 700, 10 and 10, a tenth of a report's time went into looking through them again and again.
"""


def end(app: typer.Typer) -> NoReturn:
    """Run a command line and exit."""
    gc.set_threshold(*GARBAGE)
    note_damage()
    try:
        signals.listen()
        code = _run(app)
    except KeyboardInterrupt:
        code = INTERRUPTED
    signals.ignore()
    if code == INTERRUPTED:
        print("interrupted: finished results are kept", file=sys.stderr)
    sys.stdout.flush()
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


def _run(app: typer.Typer) -> int:
    """Run the command line; return the exit code."""
    try:
        return app(standalone_mode=False) or 0  # typer makes 130 of a KeyboardInterrupt
    except typer.Abort:
        return INTERRUPTED
    except RunnerError as error:
        if "--traceback" in sys.argv:
            import traceback

            traceback.print_exc()
        print(error, file=sys.stderr)
        return error.exit_code
    except SystemExit as error:  # typer takes every broken pipe for one of its own stdout
        return _unexpected(error) if isinstance(error.__context__, BrokenPipeError) else int(error.code or 0)
    except Exception as error:  # noqa: BLE001  the only place where unexpected errors end
        return _unexpected(error)


def _unexpected(error: BaseException) -> int:
    """Print the message of a mistyped option, or the traceback of a bug; return the exit code."""
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):  # a usage error of the option parser
        command = getattr(getattr(error, "ctx", None), "command_path", "runner")
        print(f"error: {error.format_message()}\nhint: {command} --help", file=sys.stderr)
        return 2
    import traceback

    traceback.print_exc()
    print("this is a bug in runner: please report it with the lines above", file=sys.stderr)
    return 70


def emit(text: str, output: Path | None) -> None:
    """Print a result, or replace a file by it."""
    if output is None:
        try:
            print(text.rstrip("\n"), flush=True)
        except BrokenPipeError:  # the reader closed the pipe, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    save(text.rstrip("\n") + "\n", output)


def emit_path(path: Path) -> None:
    """Print the path of a file; a terminal makes it a link, by OSC 8, the escape sequence for links."""
    link = sys.stdout.isatty() and colour()
    emit(f"\033]8;;{path.resolve().as_uri()}\033\\{path}\033]8;;\033\\" if link else str(path), None)


def save(content: str | bytes, output: Path) -> None:
    """Replace a file by a result.

    Raises:
        UsageError: the file cannot be written.
    """
    from runner.core.files import write_whole

    try:
        write_whole(output, content)
    except OSError as error:
        raise UsageError(Problem(f"{output} cannot be written: {error.strerror}")) from error


class Result(Protocol):
    """What a command found out, for people and for programs."""

    def text(self, width: int, *, colour: bool) -> str:
        """Return it as text for a terminal with so many columns, with ANSI colours or without."""

    def json(self) -> Mapping[str, object]:
        """Return it as JSON has it."""


def show(result: Result, format: Literal["table", "json"], output: Path | None) -> None:
    """Print a result as text or as JSON, or write it to a file."""
    if format == "json":
        emit(json_text(result.json()), output)
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
    """Print a line to stderr."""
    print(text, file=sys.stderr, flush=True)


def progress() -> "Progress":
    """Return the progress display for this stderr: a live table on a terminal, else plain lines."""
    from runner.core.progress import create_progress

    return create_progress(note, live=sys.stderr.isatty() and os.environ.get("TERM") != "dumb")


def json_text(value: Mapping[str, object]) -> str:
    """Return a result as JSON; raises ValueError for a number that JSON cannot hold."""
    return json.dumps(value, indent=1, allow_nan=False)
