"""Run the first day with a GPU, and write one folder and its zip: ``nox -s gpu -- [--no-pin] [--out FOLDER]``.

Without a GPU the driver is the stand-in of the tests, and everything computes on the CPU; the page says so.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.first_day import limits, private
from benchmarks.first_day.page import page
from benchmarks.first_day.predictions import judged
from benchmarks.first_day.rows import Result, Row, counts, read, with_end
from benchmarks.first_day.settings import ROOT, Settings
from runner.core import machine
from runner.core.errors import GpuError
from runner.gpu import detect
from tests.fakes import driver

VERSION = 1
MINUTES = 30.0


class Check(NamedTuple):
    """A check: its module in ``checks``, its title, its time limit in seconds, and whether its time counts."""

    name: str
    title: str
    seconds: float
    counts: bool = True


CHECKS = (
    Check("doctor", "Doctor", 180),
    Check("readings", "NVML, every reading", 120),
    Check("build", "Environments", 10800, counts=False),  # downloads
    Check("imports", "What an import opens", 300),
    Check("clocks", "Products by five clocks", 420),
    Check("precisions", "Five precisions", 420),
    Check("failures", "Out of memory, time-out", 240),
    Check("kills", "SIGKILL of runner and child", 420),
    Check("telemetry", "Telemetry on and off", 150),
    Check("quick", "The quick run", 900),
    Check("restored", "The GPU at the end", 60, counts=False),
)


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(prog="nox -s gpu --", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "selectors", nargs="*", metavar="ENVIRONMENT", help="environments of matrix.yaml; all by default"
    )
    parser.add_argument("--no-pin", action="store_true", help="change nothing of the GPU: hold no clocks")
    parser.add_argument(
        "--backend", default="auto", choices=["auto", "docker", "venv", "host"], help="as of runner run"
    )
    parser.add_argument("--python", default=None, help="the interpreter that --backend host measures")
    parser.add_argument(
        "--out", type=Path, default=None, help="the folder to write; a new one below reports by default"
    )
    parser.add_argument("--minutes", type=float, default=MINUTES, help="for all checks, downloads left out; default 30")
    parser.add_argument("--checks", default=",".join(check.name for check in CHECKS), help="a selection, with commas")
    parser.add_argument("--small", action="store_true", help="the smallest sizes, to test this command")
    return parser.parse_args(words)


@contextmanager
def standin(scratch: Path) -> Iterator[bool]:
    """Lend the stand-in driver to all processes that are started in the block, if this machine has no GPU.

    Yields whether there is no GPU. Without a C compiler there is no stand-in either, and no driver answers.
    """
    if driver.STATE in os.environ:  # the caller has lent it
        yield True
        return
    try:
        here = bool(detect.present()) or detect.on_the_bus()
    except GpuError:  # a driver that does not work is a result of the day
        here = True
    if here or driver.compiler() is None:
        yield not here
        return
    library = driver.built(scratch)
    with closing(driver.StandIn(scratch / "gpus")) as board:
        board.gpu.busy = 1
        os.environ.update(driver.environment(library, board))
        os.environ["XDG_STATE_HOME"] = str(scratch / "state")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        yield True


def checked(check: Check, settings: Settings, allowance: limits.Allowance) -> Result:
    """Run a check in its own process, within its limit, and return its rows."""
    limit = allowance.limit(check.seconds, counts=check.counts)
    if limit <= 0:
        return with_end(Result(check.name, check.title, "left out", 0.0, check.seconds))
    sys.stderr.write(f"{check.title}, up to {limit / 60:.0f} min ...\n")
    settings_file, rows_file = settings.scratch / "settings.json", settings.scratch / f"{check.name}.jsonl"
    settings_file.write_text(replace(settings, limit=limit).text(), "utf-8")
    command = [sys.executable, "-m", "benchmarks.first_day.check", check.name, str(settings_file), str(rows_file)]
    end, seconds = limits.run(command, settings.folder / "logs" / f"{check.name}.txt", limit, ROOT)
    allowance.use(seconds, counts=check.counts)
    lines = rows_file.read_text("utf-8").splitlines(keepends=True) if rows_file.exists() else []
    return with_end(Result(check.name, check.title, end, seconds, limit, tuple(read(lines))))


def session(settings: Settings, names: Sequence[str], minutes: float) -> list[Result]:
    """Run the checks in order; after Ctrl-C, the others are rows that say so."""
    allowance = limits.Allowance(60 * minutes)
    results: list[Result] = []
    for check in CHECKS:
        if check.name not in names:
            continue
        if results and results[-1].end == "interrupted":
            results.append(with_end(Result(check.name, check.title, "interrupted", 0.0, check.seconds)))
        else:
            results.append(checked(check, settings, allowance))
    return results


def write(settings: Settings, results: Sequence[Result], started: str, seconds: float) -> Path:
    """Write the page and the JSON, remove what is private from all texts, and return the path of the zip."""
    gpus = () if settings.standin else detect.answering()
    document: dict[str, Any] = {
        "version": VERSION,
        "started": started,
        "seconds": seconds,
        "settings": {"standin": settings.standin, "pin": settings.pin, "backend": settings.backend},
        "machine": {**machine.describe(gpus), **machine.system()},
        "quick": (settings.folder / "quick" / "index.html").exists(),
        "checks": [result.json() for result in results],
        "predictions": [each._asdict() for each in judged(results, standin=settings.standin)],
    }
    clean = private.cleaner(private.names())
    document = private.clean_values(document, clean)
    cleaned = [Result(**{**each, "rows": tuple(Row(**row) for row in each["rows"])}) for each in document["checks"]]
    (settings.folder / "first-day.json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", "utf-8")
    text = page(document, cleaned, judged(cleaned, standin=settings.standin))
    (settings.folder / "index.html").write_text(text, "utf-8")
    private.clean_folder(settings.folder, clean)
    return Path(shutil.make_archive(str(settings.folder), "zip", settings.folder.parent, settings.folder.name))


def main(words: Sequence[str] | None = None) -> int:
    """Run and write; a check that fails is a row of the page, and no failure of the command."""
    given = arguments(words)
    now = datetime.now(UTC)
    folder = (given.out or ROOT / "reports" / f"first-day-{now:%Y%m%d-%H%M%S}").absolute()
    (folder / "logs").mkdir(parents=True)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, standin(Path(name)) as without_gpu:
        settings = Settings(
            folder=folder,
            scratch=Path(name),
            backend=given.backend,
            python=given.python,
            selectors=tuple(given.selectors),
            pin=not given.no_pin,
            standin=without_gpu,
            small=given.small,
        )
        results = session(settings, given.checks.split(","), given.minutes)
        archive = write(settings, results, f"{now:%Y-%m-%d %H:%M} UTC", time.monotonic() - begin)
    total = counts(results)
    print(f"{total['held']} held, {total['did not hold']} did not hold, {total['not tested']} not tested")
    print(f"{folder / 'index.html'}\n{archive}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
