"""Run one check in a process of its own: ``python -m benchmarks.first_day.check NAME SETTINGS ROWS``.

Each row is on disk as soon as it is known, so a check that is killed keeps those before.
"""

import importlib
import sys
from pathlib import Path

from benchmarks.first_day.rows import Row, UntestableError, line
from benchmarks.first_day.settings import Settings
from runner.core.errors import RunnerError


def main(name: str, settings: str, rows: str) -> None:
    """Write the rows of a check; what this machine lacks for it is a row, too."""
    check = importlib.import_module(f"benchmarks.first_day.checks.{name}")
    with Path(rows).open("w", encoding="utf-8") as stream:
        try:
            for row in check.rows(Settings.read(Path(settings).read_text("utf-8"))):
                stream.write(line(row))
                stream.flush()
        except UntestableError as error:
            stream.write(line(Row(check.SUBJECT, "not tested", str(error))))
        except RunnerError as error:
            stream.write(line(Row(check.SUBJECT, "did not hold", str(error))))


if __name__ == "__main__":
    main(*sys.argv[1:])
