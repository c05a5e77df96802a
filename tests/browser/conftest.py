"""A browser, and a page that the real command wrote from known records."""

import math
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from runner.catalog.cases import CASES
from runner.core.model import Skip
from runner.history.database import History
from runner.history.entries import Acceptance, CellEntry, ChangeEntry, RunEntry
from tests.support import needs
from tests.support.fake_runs import bad, cell, good, make, realistic
from tests.support.quick_run import quick

EVIL = "<script>document.title='owned'</script>\"'&" + "x" * 200 + "\u202eabc"
"""A name with an element, quotes, 200 letters, and a mark that turns the rest of a line from right to left."""
SLUGS = {"gemm": "matmul", "conv": "conv2d", "rnn": "nn-lstm", "sparse": "sparse-matmul", "allreduce": "allreduce-gloo"}
NIGHTLY = "torch-2.x/nn-lstm/rnn-sequence/lstm-b32-h1024-t50/train/fp32"
REGRESSION = "torch-2.x/lstm-cell-basic/asr-lstm/1x320-ce-short/train/fp32"
FIRST_NIGHT = -150
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="package")
def chromium(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """A headless Chromium; without one the test is skipped, or fails with ``--need browser``."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        needs.missing(request.config, "browser", "there is no Chromium: install Debian's package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def report_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run like one from a laptop, written by ``runner report``."""
    reports = tmp_path_factory.mktemp("reports")
    run = realistic(reports)
    return write_page(reports, run.id)


@pytest.fixture(scope="session")
def quick_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run of the size of the preset ``quick``."""
    reports = tmp_path_factory.mktemp("quick")
    return write_page(reports, quick(reports).id)


@pytest.fixture(scope="session")
def own_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a user's network in two releases, in two phases."""
    reports = tmp_path_factory.mktemp("own")
    records = [
        good(cell(environment, "model", workload="nanogpt", case="default", phase=phase), number, [seconds, seconds])
        for phase, times in (("forward", (0.02, 0.03)), ("train", (0.06, 0.04)))
        for environment, center in zip(("torch-1.0", "torch-2.x"), times, strict=True)
        for number in range(4)
        for seconds in [center * (1 + 0.01 * number)]
    ]
    return write_page(reports, make(reports, records).id)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site over three runs, 60 nights and 150 others, written by ``runner report --site``."""
    reports = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        realistic(reports, seed=seed, number=3)
    for arguments in (["history", "rebuild"], ["report", "--site", str(reports / "site")]):
        if arguments[0] == "report":
            add_nights(reports)
        command = [sys.executable, "-m", "runner", *arguments, "--reports", str(reports)]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    return reports / "site"


def add_nights(reports: Path) -> None:
    """Add nights to a history: a cell becomes slower and is accepted, another is a regression; one has 150 nights."""
    with History.open(f"sqlite:///{reports / 'history.db'}") as history:
        for night in range(FIRST_NIGHT, 60):
            history.add(simulated_night(night))
        history.accept(
            Acceptance(
                cells=(NIGHTLY,),
                device="docker H200",
                run=simulated_night(20).run,
                at="2026-09-21T08:00:00Z",
                reason="the new check of shapes",
                person="ann",
            )
        )


def simulated_night(night: int) -> RunEntry:
    """Return a night of two cells, or of one before night 0."""
    draw = random.Random(night)
    at = datetime(2026, 9, 1, 2, 30, tzinfo=UTC) + timedelta(days=night)
    slower = {NIGHTLY: 1.1 if night >= 20 else 1.0, REGRESSION: 1.06 if night >= 55 else 1.0}
    ratios = {name: 0.8 * value * math.exp(draw.gauss(0, 0.006)) for name, value in slower.items()}
    run = f"{at:%Y%m%d-%H%M%S}-{night % 65536:04x}"
    change = ChangeEntry(cell=REGRESSION, before=run, ratio=1.06, confirmed_in=run)
    return RunEntry(
        run=run,
        at=at.isoformat(),
        kind="night",
        device="GPU-1",
        device_name="H200",
        backend="docker",
        host="bench1",
        cells=tuple(
            CellEntry(
                cell=name,
                release=f"2.{10 + (night - FIRST_NIGHT) // 20}.0",
                seconds=0.01 * ratio,
                seconds_low=0.0099 * ratio,
                seconds_high=0.0101 * ratio,
                rounds=5,
                base=name.replace("2.x", "1.13"),
                ratio=ratio,
                ratio_low=0.99 * ratio,
                ratio_high=1.01 * ratio,
            )
            for name, ratio in ratios.items()
            if name == NIGHTLY or night >= 0
        ),
        changes=(change,) if night == 59 else (),
    )


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run whose matrix, machine, environments, errors and logs have hostile names."""
    reports = tmp_path_factory.mktemp("hostile")
    sides = [cell("torch-1.0"), cell("torch-2.x")]
    records = [
        good(each, number, [0.1 + index, 0.1 + index], device=f"device{EVIL}", release=f"release{EVIL}")
        for index, each in enumerate(sides)
        for number in range(3)
    ]
    failed = bad(cell("torch-1.12"), 0, "crash", f"failure{EVIL}")
    skips = {cell("torch-0.4"): Skip("image-unavailable", f"skip{EVIL}")}
    run = make(reports, [*records, failed], skips, cpu=f"cpu{EVIL}")
    known = run.environments()
    for facts in known.values():
        facts["release"] = f"release{EVIL}"
        facts["libraries"] = f"library{EVIL}"
        facts["packages"] = {f"package{EVIL}": "1.0"}
    run.write_environments(known)
    run.add(failed, f"log{EVIL}\n")
    return write_page(reports, run.id)


@pytest.fixture(scope="session")
def large_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 400 cases of DeepBench in three releases."""
    reports = tmp_path_factory.mktemp("large")
    draw = random.Random(5)
    cases = [name for name in CASES if name.startswith("deepbench-")][:400]
    records = []
    for name in cases:
        workload, case = name.split("/")
        slug = SLUGS[workload.removeprefix("deepbench-")]
        size, change = 10 ** draw.uniform(-4, -2), draw.uniform(0.5, 1.1)
        for number in range(3):
            for position, environment in enumerate(("torch-1.0", "torch-1.12", "torch-2.x")):
                of = cell(environment, slug, workload=workload, case=case, phase="forward")
                center = size * change**position * math.exp(draw.gauss(0, 0.02))
                records.append(good(of, number, [center * math.exp(draw.gauss(0, 0.02)) for _ in range(10)]))
    return write_page(reports, make(reports, records).id)


def write_page(reports: Path, run: str) -> Path:
    """Write the report of a run with the real command; return the path of its page."""
    command = [sys.executable, "-m", "runner", "report", run, "--reports", str(reports)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return Path(done.stdout.strip())


class Opened:
    """A page that is open, with what it requested and what it wrote to the console."""

    def __init__(
        self, browser: Browser, path: Path, width: int, *, fragment: str = "", dark: bool = False, scripts: bool = True
    ) -> None:
        """Open a page from disk with the network cut, in a window of so many pixels."""
        self.context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            offline=True,
        )
        self.page: Page = self.context.new_page()
        self.console: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(f"{path.as_uri()}{fragment}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()
