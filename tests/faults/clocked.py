"""The command line with another clock: ``python -m tests.faults.clocked FILE [ARGUMENTS ...]``.

FILE holds the seconds that the wall clock is wrong by, and is read each time that the program asks for the time; the
monotonic clock goes on, as it does when somebody sets the clock.
"""

import sys
import time
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Self

from runner.session.execution import header


def main() -> None:
    """Run the command line with the clock in it."""
    _, file, *arguments = sys.argv
    true = time.time

    def wrong() -> float:
        return true() + float(Path(file).read_text() or 0)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(wrong(), tz)

    time.time = wrong
    header.datetime = Clock  # type: ignore[attr-defined]
    sys.argv = ["runner", *arguments]
    from runner.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
