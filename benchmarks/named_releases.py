"""Releases that the command line names: how long a plan of two takes, and how many of the last releases plan and build.

``python -m benchmarks.named_releases --pairs 200 --seed 0`` plans random pairs of the last releases of each framework,
and prints why the others do not; ``--build 30`` builds and measures pairs of the small frameworks, too, and removes
what it built.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from benchmarks.table import Row, UnmeasurableError
from benchmarks.turns import in_turns, seconds
from runner.releases.candidates import PACKAGES
from runner.releases.release_files import files_of

RELEASES = ("torch==2.9.0", "torch==2.13.0")
FIRST_SECONDS = 3.0
KEPT_SECONDS = 0.5
REPEATS = 9
FIRST_REPEATS = 3
FRAMEWORKS = ("torch", "tensorflow", "jax", "keras", "numpy")
SMALL = ("tensorflow", "jax", "keras", "numpy")
"""Those whose environments have some hundred megabytes."""
LAST = 30
"""How many releases of each framework."""
AT_ONCE = 2
MEASURED = ("--backend", "venv", "--preset", "smoke", "--workload", "rnn-step", "--busy-ok")


def rows() -> Iterator[Row]:
    """Give the plan in an empty folder, with an empty cache and then with the locks that it made.

    uv's own cache is filled before the first measurement, so that no download of package metadata is measured; and
    Python's byte code is there, as pip leaves it for an installed program.
    """
    with tempfile.TemporaryDirectory(prefix="matrix-runner-bench-") as folder:
        planned = partial(_planned, Path(folder))
        planned()  # fills uv's cache, and the operating system's
        first = sorted(_first_seconds(Path(folder), planned, number) for number in range(FIRST_REPEATS))
        (kept,) = in_turns([planned], REPEATS)
    name, median = f"runner plan {' '.join(RELEASES)}", first[len(first) // 2]
    yield Row(name, f"{median:.2f} s", target=f"{FIRST_SECONDS:.0f} s", met=median < FIRST_SECONDS)
    yield Row("the same, from the kept locks", f"{kept:.2f} s", target=f"{KEPT_SECONDS} s", met=kept < KEPT_SECONDS)


def _first_seconds(folder: Path, planned: partial[None], number: int) -> float:
    """Return how long a plan takes without the locks that an earlier one made."""
    (folder / "cache" / "matrix-runner").rename(folder / f"before-{number}")
    return seconds(planned)


def _planned(folder: Path) -> None:
    """Plan once; raises UnmeasurableError where the index does not answer."""
    done = runner_in(folder, "plan", *RELEASES, "--device", "cpu")
    if done.returncode:
        raise UnmeasurableError(last_line(done))


def runner_in(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the program in an empty folder, with a cache of its own."""
    (work := folder / "empty").mkdir(exist_ok=True)
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environ |= {
        "XDG_CACHE_HOME": str(folder / "cache"),
        "UV_CACHE_DIR": str(folder / "uv"),
        "PYTHONPYCACHEPREFIX": str(folder / "byte-code"),
    }
    command = [sys.executable, "-m", "runner", *words]
    return subprocess.run(command, cwd=work, env=environ, capture_output=True, text=True, check=False)


def last_line(done: "subprocess.CompletedProcess[str]") -> str:
    """Return the last error of a command, or how many tests failed; else its last line."""
    lines = done.stderr.splitlines()
    errors = [line for line in lines if line.startswith("error") or re.search(r"\b[1-9]\d* failed$", line)]
    return (errors or done.stderr.strip().splitlines() or ["no output"])[-1]


def releases_of(framework: str, environ: Mapping[str, str] = os.environ) -> list[Version]:
    """Return the releases of a framework on the index, the oldest first; no pre-releases, and none withdrawn."""
    versions = set[Version]()
    for each in files_of(PACKAGES[framework][0], environ):
        with suppress(InvalidWheelFilename):
            _, version, _, _ = parse_wheel_filename(each.filename)
            if not (version.is_prerelease or each.yanked):
                versions.add(version)
    return sorted(versions)


def last_releases(framework: str, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the last releases of a framework on the index as they are named, the oldest first."""
    return tuple(f"{framework}=={version.public}" for version in releases_of(framework, environ)[-LAST:])


def random_pairs(frameworks: Sequence[str], count: int, seed: int) -> list[tuple[str, str]]:
    """Return random pairs of releases, each of one framework; raises UnmeasurableError where the index lists none."""
    draw, releases = random.Random(seed), {name: last_releases(name) for name in frameworks}
    if unlisted := [name for name, known in releases.items() if len(known) < 2]:
        raise UnmeasurableError(f"the index lists no releases of {', '.join(unlisted)}")
    return [tuple(draw.sample(releases[draw.choice(frameworks)], 2)) for _ in range(count)]  # type: ignore[misc]


def reason_of_plan(folder: Path, pair: tuple[str, str]) -> str:
    """Plan two releases; return why not both of them would be measured, empty where they would."""
    done = runner_in(folder, "plan", *pair, "--device", "cpu", "--format", "json")
    if done.returncode:
        return last_line(done)
    cells = json.loads(done.stdout)["cells"]
    running = {cell["environment"] for cell in cells if cell["verdict"] == "run"}
    left_out = {cell["environment"]: cell.get("reason", "") for cell in cells if cell["environment"] not in running}
    return "; ".join(f"{name}: {reason}" for name, reason in left_out.items()) or ("" if cells else "no cells")


def reason_of_run(folder: Path, pair: tuple[str, str]) -> str:
    """Build and measure two releases, and remove them; return why not both were measured, empty where they were."""
    with tempfile.TemporaryDirectory(prefix="matrix-runner-bench-") as separate:
        for shared in ("uv", "byte-code"):
            (Path(separate) / shared).symlink_to(folder / shared)
        done = runner_in(Path(separate), "run", *pair, "--device", "cpu", *MEASURED)
        return last_line(done) if done.returncode else ""


def main(words: Sequence[str] | None = None) -> None:
    """Plan random pairs, build some, and print how many could not be, and why."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200, help="how many pairs to plan")
    parser.add_argument("--build", type=int, default=0, help="how many pairs of the small frameworks to build")
    parser.add_argument("--first", type=int, default=1, help="the pair to begin with, of those to build")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="matrix-runner-bench-") as name:
        folder = Path(name)
        (folder / "uv").mkdir()
        (folder / "byte-code").mkdir()
        pairs = random_pairs(FRAMEWORKS, options.pairs, options.seed)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            _print("plan", pairs, list(pool.map(partial(reason_of_plan, folder), pairs)))
        pairs, reasons = random_pairs(SMALL, options.build, options.seed)[options.first - 1 :], []
        for number, pair in enumerate(pairs, options.first):
            reasons.append(reason_of_run(folder, pair))
            print(f"{number}/{options.build} {' '.join(pair)}: {reasons[-1] or 'measured'}", flush=True)
        _print("build and measure", pairs, reasons)


def _print(what: str, pairs: Sequence[tuple[str, str]], reasons: Sequence[str]) -> None:
    failed = [(pair, reason) for pair, reason in zip(pairs, reasons, strict=True) if reason]
    print(f"{len(pairs) - len(failed)} of {len(pairs)} pairs {what}")
    for pair, reason in failed:
        print(f"  {' '.join(pair)}: {reason}")


if __name__ == "__main__":
    main()
