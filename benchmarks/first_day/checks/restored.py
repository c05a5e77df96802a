"""Whether the GPU is as it was before the other checks: application clocks, persistence, MIG, and no clocks held."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.first_day.checks import readings
from benchmarks.first_day.rows import Row, UntestableError, read
from benchmarks.first_day.settings import ROOT, Settings

SUBJECT = "the GPU at the end"
COMPARED = ("application", "persistent", "sliced")
NAME = "what its clocks support"


def rows(settings: Settings) -> Iterator[Row]:
    """Yield a row for each GPU, and one for the clocks that are still held."""
    path = settings.scratch / "readings.jsonl"
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    before = {row.name: row.values for row in read(lines) if row.name.endswith(NAME)}
    if not before:
        raise UntestableError("the GPU was not read at the start")
    for row in readings.rows(settings):
        if row.name in before:
            yield _row(row, before[row.name])
    command = settings.command("clocks", None, "show", "--format", "json")
    done = subprocess.run(command, capture_output=True, cwd=ROOT, check=False)
    held = [gpu["held"] for gpu in json.loads(done.stdout)["gpus"] if gpu["held"]]
    yield Row("no clocks are held", "did not hold" if held else "held", f"{len(held)} GPUs have clocks held")


def _row(row: Row, before: Mapping[str, Any]) -> Row:
    changed = [
        f"{name}: {before[name]} before, {row.values[name]} now"
        for name in COMPARED
        if before[name] != row.values[name]
    ]
    detail = "; ".join(changed) or "application clocks, persistence mode and MIG mode are as before"
    return Row(row.name.replace(NAME, "as before"), "did not hold" if changed else "held", detail)
