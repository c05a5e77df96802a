"""How the program speaks and ends: results on stdout, all else on stderr. Nothing else here prints or exits."""

import gc
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from runner.cli import signals
from runner.core.errors import Problem, RunnerError, UsageError

if TYPE_CHECKING:
    from runner.core.progress import Progress

INTERRUPTED = 130  # 128 + SIGINT
GARBAGE = (50_000, 20, 20)
"""When Python looks for cycles that nobody needs. What a large run is made of lives to the end of the command; with
Python's own numbers, 700, 10 and 10, a tenth of a report's time went into looking at it again and again.
"""


def end(app: typer.Typer) -> NoReturn:
    """Run a command line and exit."""
    gc.set_threshold(*GARBAGE)
    try:
        signals.listen()
        code = _run(app)
    except KeyboardInterrupt:
        code = INTERRUPTED
    signals.ignore()
    if code == INTERRUPTED:
        print("interrupted; what was finished is kept", file=sys.stderr)
    sys.stdout.flush()
    sys.exit(code)


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
    except SystemExit as error:  # typer takes any broken pipe for its own stdout's
        return _unexpected(error) if isinstance(error.__context__, BrokenPipeError) else int(error.code or 0)
    except Exception as error:  # noqa: BLE001  the one place where what nobody expected ends
        return _unexpected(error)


def _unexpected(error: BaseException) -> int:
    """Say what a mistyped option or a bug deserves; return the exit code."""
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):  # a usage error of the option parser
        print(f"error: {error.format_message()}\nhint: runner --help", file=sys.stderr)
        return 2
    import traceback

    traceback.print_exc()
    print("this is a bug in runner: please report it with the lines above", file=sys.stderr)
    return 70


def emit(text: str, output: Path | None) -> None:
    """Print a result, or write it to a file whole."""
    if output is None:
        try:
            print(text.rstrip("\n"), flush=True)
        except BrokenPipeError:  # whoever read it has had enough, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    from runner.core.files import write_whole

    try:
        write_whole(output, text.rstrip("\n") + "\n")
    except OSError as error:
        raise UsageError(Problem(f"{output} cannot be written: {error.strerror}")) from error


def note(text: str) -> None:
    """Say something on stderr."""
    print(text, file=sys.stderr, flush=True)


def progress() -> "Progress":
    """Return how the progress of long work is shown on this stderr."""
    from runner.core.progress import shown

    return shown(note, live=sys.stderr.isatty())


def json_text(value: Mapping[str, object]) -> str:
    """Return a result as JSON; raises ValueError for a number that JSON has not."""
    return json.dumps(value, indent=1, allow_nan=False)
