"""The command line, stopped at a function: ``python -m tests.faults.paused MODULE:FUNCTION MARKER [ARGUMENTS ...]``.

When the function is called, the file MARKER appears, and its first call waits until ``MARKER.go`` exists.
A fault is so planted at one stage of the real program, however fast the machine is. ``MODULE:CLASS.METHOD`` works, too,
and ``MODULE:FUNCTION@WORD#3`` waits in the third call that has WORD among its arguments.
"""

import importlib
import itertools
import sys
import time
from functools import reduce
from pathlib import Path
from typing import Any

PAUSE_SECONDS = 0.02


def pause_at(target: str, marker: Path) -> None:
    """Make a call of a function wait for ``MARKER.go``."""
    target, _, number = target.partition("#")
    target, _, word = target.partition("@")
    module, _, path = target.partition(":")
    *owners, name = path.split(".")
    owner = reduce(getattr, owners, importlib.import_module(module))
    original = getattr(owner, name)

    left = itertools.count(int(number or 1), -1)

    def paused(*arguments: Any, **options: Any) -> Any:
        if (not word or word in arguments) and next(left) == 1:
            marker.touch()
            while not marker.with_name(f"{marker.name}.go").exists():
                time.sleep(PAUSE_SECONDS)
        return original(*arguments, **options)

    setattr(owner, name, paused)


def main() -> None:
    """Run the command line with the pause in it."""
    _, target, marker, *arguments = sys.argv
    pause_at(target, Path(marker))
    sys.argv = ["runner", *arguments]
    from runner.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
