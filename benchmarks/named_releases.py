"""How long a plan of two releases takes that the command line names, the first time and from their kept locks."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.table import Row, UnmeasurableError
from benchmarks.turns import in_turns, seconds

RELEASES = ("torch==2.9.0", "torch==2.13.0")
PLAN = [sys.executable, "-m", "runner", "plan", *RELEASES, "--device", "cpu"]
FIRST_SECONDS = 3.0
KEPT_SECONDS = 0.5
REPEATS = 9


def rows() -> Iterator[Row]:
    """Give the plan in an empty folder, with an empty cache and then with the locks that it made.

    uv's own cache is filled before the first measurement, so that no download of package metadata is measured.
    """
    with tempfile.TemporaryDirectory(prefix="matrix-runner-bench-") as cache, tempfile.TemporaryDirectory() as folder:
        planned = partial(_planned, Path(folder), Path(cache))
        planned()  # fills uv's cache, and the operating system's
        (Path(cache) / "matrix-runner").rename(Path(cache) / "before")
        first = seconds(planned)
        (kept,) = in_turns([planned], REPEATS)
    name = f"runner plan {' '.join(RELEASES)}"
    yield Row(name, f"{first:.2f} s", target=f"{FIRST_SECONDS:.0f} s", met=first < FIRST_SECONDS)
    yield Row("the same, from the kept locks", f"{kept:.2f} s", target=f"{KEPT_SECONDS} s", met=kept < KEPT_SECONDS)


def _planned(folder: Path, cache: Path) -> None:
    """Plan once; raises UnmeasurableError where the index does not answer."""
    environ = {**os.environ, "XDG_CACHE_HOME": str(cache), "UV_CACHE_DIR": str(cache / "uv")}
    done = subprocess.run(PLAN, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnmeasurableError((done.stderr.strip().splitlines() or ["no plan"])[-1])
