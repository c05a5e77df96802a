"""A browser, and a page that the real command wrote from known records."""

import math
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from runner.catalog.cases import CASES
from runner.core.model import Skip
from tests.support.fake_runs import bad, cell, good, make, realistic

EVIL = "<script>document.title='owned'</script>\"'&" + "x" * 200 + "\u202eabc"
"""A name with an element, quotes, 200 letters, and a mark that turns the rest of a line from right to left."""
SLUGS = {"gemm": "matmul", "conv": "conv2d", "rnn": "nn-lstm", "sparse": "sparse-matmul", "allreduce": "allreduce-gloo"}
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="package")
def chromium(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """A headless Chromium; without one the test is skipped, or fails where --run-browser was given."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        if request.config.getoption("--run-browser"):
            pytest.fail("--run-browser was given and there is no Chromium: install Debian's package chromium")
        pytest.skip("there is no Chromium")
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
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site over three runs, written by ``runner report --site``."""
    reports = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        realistic(reports, seed=seed, number=3)
    command = [sys.executable, "-m", "runner", "report", "--site", str(reports / "site"), "--reports", str(reports)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return reports / "site"


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
