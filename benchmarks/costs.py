"""What this program costs, each figure beside its peer in the same minute: ``nox -s bench``.

Prints one table: figure, ours, peer, target, met or not. Times are medians; the machine should be idle.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from runner.backends import Backend
from runner.matrix import load, parse
from runner.measure.references import References
from runner.measure.session import Session
from runner.model import Limits, Request
from runner.options import Options
from runner.pipeline import prepare
from runner.plan import plan
from runner.plan_json import plan_json
from runner.setup import cache_folder, choose_backend, setup
from runner.workloads import CASES

ROOT = Path(__file__).parent.parent
REPEATS = 15
ROUNDS = 30


def seconds(call: Callable[[], object]) -> float:
    """Return how long one call takes."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def print_nothing(_line: str) -> None:
    """Take a line of progress and say nothing."""


def start_up() -> tuple[float, float]:
    """Return the median seconds of ``runner --help`` and of ``nox --version``, taken in turns."""
    ours = [sys.executable, "-m", "runner", "--help"]
    peer = [sys.executable, "-m", "nox", "--version"]
    times: list[tuple[float, float]] = []
    for _ in range(REPEATS):
        pair = [seconds(partial(subprocess.run, c, capture_output=True, check=True)) for c in (ours, peer)]
        times.append((pair[0], pair[1]))
    return statistics.median(t[0] for t in times), statistics.median(t[1] for t in times)


def planning() -> tuple[int, float, float]:
    """Return a number of cells, and the median seconds to plan them and to give them as JSON, the matrix being read."""
    environments = "".join(
        f'  torch-{k}: {{framework: torch, release: "1.{k}.0", python: "3.10", requirements: [torch]}}\n'
        for k in range(75)
    )
    text = f"version: 1\nenvironments:\n{environments}workloads:\n  rnn-step: {{phases: [forward, train]}}\n"
    text += "  asr-lstm: {phases: [compile, compile-warm, forward, train], precisions: [fp32, tf32]}\n"
    matrix = parse(text.encode(), "generated.yaml")
    request = Request(environments=tuple(matrix.environments))
    found = plan(matrix, request, {})
    times = [seconds(lambda: plan(matrix, request, {})) for _ in range(REPEATS)]
    both = [seconds(lambda: plan_json(plan(matrix, request, {}))) for _ in range(REPEATS)]
    return len(found.cells), statistics.median(times), statistics.median(both)


def overhead(backend: Backend, environment: str, slug: str) -> tuple[float, float]:
    """Return the median and the greatest seconds that a round costs beyond what its child spends on its work.

    Two servers take turns, as in every block.
    """
    options = Options(selectors=[environment], matrix=ROOT / "matrix.yaml", device="cpu", backend=backend.name)
    found = setup(options)
    prepared = prepare(found.matrix, found.request, backend, found.place, None)
    ready = backend.provision(prepared.specs[0], print_nothing)
    limits = Limits(memory=4 << 30, run="bench")
    sessions = [Session(backend.open(ready, limits), f"bench#{number}") for number in (1, 2)]
    try:
        for session in sessions:
            assert session.hello(ready.framework, 1, "cpu", 300)["status"] == "ok"
        case = dict(CASES["rnn-step/lstm-b32-h128"])
        references = References(cache_folder(os.environ) / "references", 2)
        request = {
            "case": case,
            "key": references.key(case),
            "framework": ready.framework,
            "implementation": slug,
            "phase": "train",
            "device": "cpu",
            "precision": "fp32",
            "seconds": 0.05,
            "cache": backend.cache(ready),
            "timeout": 60.0,
            "memory": None,
        }
        beyond = []
        for number in range(ROUNDS + 2):
            begin = time.perf_counter()
            sessions[1 - number % 2].settle()  # the child before this one is to be gone, memory and all
            reply = sessions[number % 2].measure(request, lambda: references.get(case))
            beyond.append(time.perf_counter() - begin - reply["child_seconds"])
        return statistics.median(beyond[2:]), max(beyond[2:])
    finally:
        for session in sessions:
            session.close()


def provisioning(backend: Backend) -> tuple[int, float]:
    """Return how many environments are ready, and the seconds that finding all of them ready takes."""
    matrix = load(ROOT / "matrix.yaml")

    def again() -> int:
        found = setup(Options(matrix=ROOT / "matrix.yaml", device="cpu", backend=backend.name))
        prepared = prepare(matrix, found.request, backend, found.place, None)
        return sum(backend.provision(spec, print_nothing).cached for spec in prepared.specs)

    count = again()
    return count, seconds(again)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", default="torch-2.x", help="where a round's overhead is measured")
    parser.add_argument("--slug", default="nn-lstm")
    wanted = parser.parse_args()
    rows: list[tuple[str, str, str, str, bool]] = []
    ours, peer = start_up()
    rows.append(("runner --help", f"{ours * 1e3:.0f} ms", f"nox --version {peer * 1e3:.0f} ms", "peer", ours <= peer))
    cells, alone, with_json = planning()
    rows.append((f"plan {cells} cells", f"{alone:.3f} s", f"as JSON {with_json:.3f} s", "0.5 s", alone < 0.5))
    for name in ("docker", "venv"):
        try:
            backend, _ = choose_backend(Options(backend=name, matrix=ROOT / "matrix.yaml"), cache_folder(os.environ))
        except Exception as error:  # noqa: BLE001  # no engine: the table says so and goes on
            sys.stderr.write(f"{name}: {error}\n")
            continue
        middle, worst = overhead(backend, wanted.environment, wanted.slug)
        what = f"a round beyond its work, {name}"
        rows.append((what, f"{middle * 1e3:.1f} ms", f"worst {worst * 1e3:.1f} ms", "20 ms", middle < 0.02))
        count, again = provisioning(backend)
        rows.append((f"provision {count} ready, {name}", f"{again:.2f} s", "", "3 s", again < 3))
    for row in rows:
        print(f"{row[0]:34} {row[1]:>10}  {row[2]:24} target {row[3]:8} {'met' if row[4] else 'MISSED'}")


if __name__ == "__main__":
    main()
