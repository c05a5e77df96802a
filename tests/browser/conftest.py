"""A browser, and a page that the real command wrote from known records."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.fake_runs import realistic

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
