"""Every minor release of the small frameworks, named on the command line: which of them build and measure a network.

``python -m benchmarks.minor_releases --output docs/minor-releases.md`` builds each as a virtual environment, measures
the network of ``runner new`` in it, removes it, and writes a table with the reason for each release that was not
measured. A release that the file has already, measured or not, is not built again: remove its line to try it again.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import Version

from benchmarks.continued_page import SMALLEST_FREE, known
from benchmarks.named_releases import last_line, releases_of, runner_in
from runner import load_run
from runner.core.errors import RunnerError
from runner.core.files import write_whole

FIRST: Mapping[str, str] = {"numpy": "1.21", "jax": "0.4.13", "keras": "3", "tensorflow": "2"}
"""Framework -> the oldest release that is tried; those with the smallest environments first."""
PATCHES = Version("0.5")
"""Before this release of JAX, each release counts: 0.4 had 38 of them, which changed as much as minor releases do."""
MODEL = "my_network.py"
SETTINGS = ("--device", "cpu", "--backend", "venv", "--rounds", "1", "--seconds", "0.1", "--busy-ok")
HEAD = """\
# Minor releases

Each release was named on the command line, as in `runner run numpy==1.26.4`, to be built as a virtual \
environment and to measure a small network on a CPU: the newest patch release of each minor release of NumPy since \
1.21, Keras 3 and TensorFlow 2, and each release of JAX since 0.4.13, of which 0.4.13 to 0.4.15 have no wheel. \
`python -m benchmarks.minor_releases` tries them, and a release without a line has not been tried yet.

The network is the model file that `runner new` writes. Samples of a tenth of a second on a machine with two cores \
show that a release computes, and not how fast it is: [compare two releases](tutorial.md) for that. "Seconds" is what \
the command took, with the download.

| release | Python | forward pass | seconds | date | not measured because |
| --- | --- | --- | --- | --- | --- |
"""
_RELEASE = r"[a-z]+==[^ ]+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What became of a release.

    Attributes:
        release: as it was named.
        python: the minor version of its interpreter; empty where it was not built.
        step: the median time of a forward pass in seconds; NaN where it was not measured.
        seconds: what it took.
        day: when.
        reason: why it was not measured; empty where it was.
    """

    release: str
    python: str
    step: float
    seconds: float
    day: str
    reason: str

    @property
    def line(self) -> str:
        """Its line of the table."""
        step = "" if self.reason else f"{self.step * 1e3:.3g} ms"
        reason = self.reason.replace("|", "\\|")
        return f"| {self.release} | {self.python} | {step} | {self.seconds:.0f} | {self.day} | {reason} |"


def minors(framework: str) -> list[str]:
    """Return the newest release of each minor release of a framework as it is named, the oldest first."""
    newest: dict[tuple[int, ...], Version] = {}
    for version in releases_of(framework):
        if version >= Version(FIRST[framework]):
            patches = framework == "jax" and version < PATCHES
            newest[version.release[:3] if patches else version.release[:2]] = version
    return [f"{framework}=={version.public}" for version in newest.values()]


def tried(release: str, folder: Path) -> Trial:
    """Build and measure a release below a folder, and remove what was built."""
    start, environ = time.monotonic(), {"PIP_NO_CACHE_DIR": "1"}
    os.environ.update(environ)
    with tempfile.TemporaryDirectory(prefix="release-", dir=folder) as name:
        separate = Path(name)
        for shared in ("uv", "byte-code"):
            (folder / shared).mkdir(exist_ok=True)
            (separate / shared).symlink_to(folder / shared)
        runner_in(separate, "new", MODEL, "--framework", release.partition("==")[0])
        done = runner_in(separate, "run", release, "--model", MODEL, *SETTINGS)
        step, failure = _step(separate / "empty" / "reports")
        python = _python(separate / "cache")
    reason = "" if step is not None else failure or last_line(done)
    return Trial(
        release=release,
        python=python,
        step=float("nan") if step is None else step,
        seconds=time.monotonic() - start,
        day=datetime.now(UTC).date().isoformat(),
        reason=reason.replace(str(separate), "..."),
    )


def _step(reports: Path) -> tuple[float | None, str]:
    """Return the median time of the forward pass, and why it was not measured: None and the first failure."""
    with suppress(RunnerError):
        run = load_run(reports)
        times = run.samples[run.samples["phase"] == "forward"]["seconds"]
        failures = [f"{each.failure}: {each.reason}" for each in run.failures.itertuples()]
        return statistics.median(times) if len(times) else None, next(iter(failures), "")
    return None, ""


def _python(cache: Path) -> str:
    """Return the minor version of Python of the virtual environment in a cache; empty without one."""
    for folder in cache.glob("matrix-runner/venvs/*/lib/python3.*"):
        return folder.name.removeprefix("python")
    return ""


def write(path: Path, lines: Mapping[str, str]) -> None:
    """Write the page: how many were measured, and a line for each release, by framework and version."""

    def order(release: str) -> tuple[str, Version]:
        framework, _, version = release.partition("==")
        return framework, Version(version)

    measured = sum(line.endswith("|  |") for line in lines.values())
    total = f"\n{measured} of {len(lines)} releases were measured.\n"
    write_whole(path, HEAD + "\n".join(lines[release] for release in sorted(lines, key=order)) + "\n" + total)


def main(words: Sequence[str] | None = None) -> None:
    """Try releases until all have been tried or the disk has no room for another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="the page to write, and to continue")
    parser.add_argument("--framework", action="append", choices=tuple(FIRST), help="all of them by default")
    parser.add_argument("--stop-after", type=float, default=float("inf"), help="seconds after which none is begun")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="matrix-runner-bench-") as folder:
        _try(options.output, _untried(options), Path(folder), time.monotonic() + options.stop_after)


def _untried(options: argparse.Namespace) -> Iterator[str]:
    of_page = known(options.output, _RELEASE)
    for framework in options.framework or FIRST:
        yield from (release for release in minors(framework) if release not in of_page)


def _try(output: Path, releases: Iterator[str], folder: Path, end: float) -> None:
    for release in releases:
        if shutil.disk_usage(folder).free < SMALLEST_FREE:
            print(f"{release}: not tried: less than {SMALLEST_FREE >> 30} GB are free")
            return
        if time.monotonic() > end:
            print(f"{release}: not tried: the time is over")
            return
        trial = tried(release, folder)
        print(trial.line, flush=True)
        write(output, {**known(output, _RELEASE), release: trial.line})


if __name__ == "__main__":
    main()
