"""Nights of 200 tests of an environment, as several tests of alerts need them."""

import json
from pathlib import Path
from typing import Any

from runner.nights.night import Night
from tests.support.nights import change, many, night, run_of

CELLS = many(200)
KEY = f"torch-2.x-{run_of(1)}"
OPENED = "torch-2.x up to 10 % slower: 200 tests, on NVIDIA H200"
CLOSED = "torch-2.x: no longer slower: 200 tests on NVIDIA H200"


def slower(day: int, cells: list[Any] = CELLS, **options: Any) -> Night:
    """Return a night in which some cells are confirmed to be slower, and all were measured."""
    return night(day, [change(of, run_of(1), **options) for of in cells], CELLS)


def stored(reports: Path, day: int) -> list[dict[str, Any]]:
    """Return the alerts that the file of a night has."""
    entries: list[dict[str, Any]] = json.loads((reports / f"nights/{run_of(day)}.json").read_text())["alerts"]
    return entries
