"""How long the site over 100,000 cell-nights takes, and how large it is: 200 cells, 500 nights each.

Two cells of a hundred became 5 % slower at some night, and the release changes every thirtieth night. The nights are
in a history of SQLite; filling it is not counted.
"""

import math
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.table import Row

CELLS, NIGHTS = 200, 500
MOST_SECONDS = 60.0
FIRST = datetime(2025, 7, 1, 2, 30, tzinfo=UTC)
LARGEST_PAGE = 1_000_000


def rows() -> Iterator[Row]:
    """Give the time of the site, and the size of its largest page."""
    from runner.watch.site import write_site

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        filled = fill(folder)
        begin = time.perf_counter()
        write_site(folder, folder / "site", 0.02, lambda _: None)
        seconds = time.perf_counter() - begin
        sizes = {path: path.stat().st_size for path in (folder / "site").rglob("*.html")}
        index = sizes[folder / "site/index.html"]
        sys.stderr.write(
            f"history-site: filled in {filled:.0f} s; {len(sizes)} pages of {sum(sizes.values()) / 1e6:.1f} MB, "
            f"the index of {index / 1e3:.0f} kB\n"
        )
    figure = f"the site over {CELLS * NIGHTS:,} cell-nights"
    yield Row(figure, f"{seconds:.1f} s", target=f"{MOST_SECONDS:g} s", met=seconds < MOST_SECONDS)
    largest = max(sizes.values())
    yield Row("its largest page", f"{largest / 1e3:.0f} kB", target="1 MB", met=largest < LARGEST_PAGE)


def fill(folder: Path, cells: int = CELLS, nights: int = NIGHTS) -> float:
    """Fill a history with simulated nights; return the seconds that took."""
    from runner.history.database import History
    from runner.history.entries import Acceptance, CellEntry, RunEntry

    draw = random.Random(0)
    names = [f"torch-2.x/nn-lstm/rnn-step/lstm-b{number}-h128/train/fp32" for number in range(1, cells + 1)]
    begin = time.perf_counter()
    with History.open(f"sqlite:///{folder / 'history.db'}") as history:
        for night in range(nights):
            at = FIRST + timedelta(days=night)
            weather = math.exp(draw.gauss(0, 0.03))
            measured = []
            for position, cell in enumerate(names):
                slower = 1.05 if position % 50 == 0 and night >= nights - 4 - position // 50 * 40 else 1.0
                ratio = 0.8 * slower * math.exp(draw.gauss(0, 0.006))
                seconds = 0.002 * (1 + position % 7) * ratio * weather
                measured.append(
                    CellEntry(
                        cell=cell,
                        release=f"2.{6 + night // 30}.0",
                        seconds=seconds,
                        seconds_low=seconds * 0.98,
                        seconds_high=seconds * 1.02,
                        rounds=5,
                        base=cell.replace("torch-2.x", "torch-1.13"),
                        base_release="1.13.1",
                        base_digest="sha256:1",
                        ratio=ratio,
                        ratio_low=ratio * 0.99,
                        ratio_high=ratio * 1.01,
                        verdict="faster",
                    )
                )
            history.add(
                RunEntry(
                    run=f"{at:%Y%m%d-%H%M%S}-0000",
                    at=f"{at:%Y-%m-%dT%H:%M:%SZ}",
                    kind="night",
                    device="GPU-1",
                    device_name="H200",
                    backend="docker",
                    host="bench1",
                    harness="9f3c",
                    cells=tuple(measured),
                )
            )
        accepted = FIRST + timedelta(days=nights * 3 // 4)
        level = Acceptance(
            cells=(names[0],),
            device="docker H200",
            run=f"{accepted:%Y%m%d-%H%M%S}-0000",
            at=f"{accepted:%Y-%m-%dT%H:%M:%SZ}",
            reason="the check of shapes was wanted",
            person="ann",
        )
        history.accept(level)
    return time.perf_counter() - begin
