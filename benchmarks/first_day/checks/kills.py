"""SIGKILL of the runner and of a measuring child in the middle of a run: what remains, and whether it resumes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.first_day import runs
from benchmarks.first_day.environments import planned
from benchmarks.first_day.rows import Row
from benchmarks.first_day.settings import ROOT, Settings
from runner.session.options import Options

SUBJECT = "SIGKILL"
ROUNDS, SECONDS = 3, 0.3
START_SECONDS, END_SECONDS = 120.0, 180.0
AGAIN_SECONDS = 1.0  # after which a child that had already answered when it was killed counts as missed
GONE_SECONDS = 30.0  # in which servers, containers and clocks have to be gone and restored
HARNESS = "harness.zip"
HOLDING = ROOT / "tests" / "integration" / "data" / "gpu_run.py"
KILL_IN_CONTAINER = """
import os, signal
parents = {}
for name in filter(str.isdigit, os.listdir('/proc')):
    line = open('/proc/%s/cmdline' % name, 'rb').read()
    if b'harness' in line and int(name) not in (1, os.getpid()):  # process 1 is the engine's init
        parents[name] = open('/proc/%s/stat' % name).read().rpartition(')')[2].split()[1]
for name in parents:
    if parents[name] in parents:
        os.kill(int(name), signal.SIGKILL)
        print(name)
"""
"""Kills the processes that a harness server has forked: they have its command line."""


def rows(settings: Settings) -> Iterator[Row]:
    """Yield what remains after each kill, and whether the run is whole at its end."""
    options = _options(settings)
    yield from _runner_killed(settings, options)
    if settings.standin and settings.pin:
        yield from _clocks_of_standin(settings, options)
    yield from _child_killed(settings, options)


def _options(settings: Settings) -> Options:
    """Return the options of a run of a few seconds in the newest environment."""
    bench = planned(settings, settings.options(workload=["rnn-step"]))
    environment = bench.newest("torch", "numpy", "jax", "tensorflow").environment
    cells = [cell for block in bench.prepared.plan.blocks for cell in block.cells if cell.environment == environment]
    slug = next(cell.implementation for cell in cells if cell.case == "lstm-b32-h128")
    selector = f"{environment}/{slug}/rnn-step/lstm-b32-h128/*"
    return settings.options(
        selectors=[selector], precision=["fp32"], rounds=ROUNDS, max_rounds=ROUNDS, seconds=SECONDS, busy_ok=True
    )


def _runner_killed(settings: Settings, options: Options) -> Iterator[Row]:
    """Kill the runner, look at what remains, and resume the run."""
    reports, log = settings.scratch / "killed", settings.folder / "logs" / "killed-run.txt"
    process = runs.start(_with(settings, options, reports), log)
    folder = _wait(lambda: runs.run_folder(reports), START_SECONDS, process)
    if folder is None or not _wait(lambda: runs.measured(folder), START_SECONDS, process):
        yield Row("SIGKILL of the runner", "not tested", f"the run ended before it measured: exit {process.poll()}")
        return
    children, held = runs.below(process.pid), _locked(settings)
    process.kill()
    process.wait()
    yield _gone("processes after SIGKILL of the runner", lambda: runs.alive(children), len(children))
    yield _gone("containers after SIGKILL of the runner", lambda: runs.containers(folder.name), None)
    if not settings.standin:
        yield _clocks("clocks after SIGKILL of the runner", settings, bool(held))
    yield from _resumed(settings, options, reports, folder)


def _resumed(settings: Settings, options: Options, reports: Path, folder: Path) -> Iterator[Row]:
    before = len(runs.measured(folder))
    command = settings.command("run", Options(matrix=options.matrix, reports=reports, busy_ok=True), "--resume")
    with (settings.folder / "logs" / "killed-run.txt").open("ab") as log:
        code = subprocess.run(command, cwd=ROOT, stdout=log, stderr=log, timeout=END_SECONDS, check=False).returncode
    good = [record for record in runs.records(folder) if record["status"] == "ok"]
    rounds = Counter((record["cell"], record["round"]) for record in good)
    cells = {cell for cell, _ in rounds}
    complete = bool(cells) and all((cell, number) in rounds for cell in cells for number in range(1, ROUNDS + 1))
    detail = f"exit {code}; {before} records before the kill, {len(rounds)} of {ROUNDS * len(cells)} at the end"
    yield Row("--resume finishes the killed run", "held" if code == 0 and complete else "did not hold", detail)


def _child_killed(settings: Settings, options: Options) -> Iterator[Row]:
    """Kill a measuring child: its cell fails, and the run goes on."""
    name = "SIGKILL of a measuring child"
    reports, log = settings.scratch / "child", settings.folder / "logs" / "killed-child.txt"
    process = runs.start(_with(settings, options, reports), log)
    folder = _wait(lambda: runs.run_folder(reports), START_SECONDS, process)
    if folder is None or not _wait(lambda: runs.measured(folder), START_SECONDS, process):
        yield Row(name, "not tested", f"the run ended before it measured: exit {process.poll()}")
        return
    killed = _wait(
        lambda: _kill_child(process.pid, folder.name) and _wait(lambda: _failed(folder), AGAIN_SECONDS, process),
        START_SECONDS,
        process,
    )
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)
    process.kill()
    if not killed:
        yield Row(name, "not tested", "no measuring child was seen")
        return
    failed = _failed(folder)
    good = sum(record["status"] == "ok" for record in runs.records(folder))
    kinds = sorted({f"{record['class']}: {record.get('reason', '')}" for record in failed})
    detail = f"{'; '.join(kinds) or 'no record failed'}; {good} records are good, exit {process.returncode}"
    classes = {record["class"] for record in failed}
    yield Row(name, "held" if classes == {"crash"} and good else "did not hold", detail, {"classes": sorted(classes)})


def _failed(folder: Path) -> list[dict[str, Any]]:
    """Return the records of a run that failed."""
    return [record for record in runs.records(folder) if record["status"] == "failed"]


def _kill_child(pid: int, run: str) -> bool:
    """Kill the children of a run's harness servers; False while there is none."""
    names = runs.containers(run)
    if names:
        return any(word.isdigit() for name in names for word in runs.inside(name, KILL_IN_CONTAINER).split())
    lines = {child: (parent, line) for child, parent, line in runs.processes()}
    servers = {child for child in runs.below(pid) if HARNESS in lines.get(child, (0, ""))[1]}
    measuring = [child for child in servers if lines[child][0] in servers]
    for child in measuring:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    return bool(measuring)


def _clocks_of_standin(settings: Settings, options: Options) -> Iterator[Row]:
    """Kill a run that holds the clocks of the stand-in while NumPy computes."""
    words = replace(options, device=None, reports=settings.scratch / "holding", rounds=40).to_argv()
    process = runs.start([sys.executable, str(HOLDING), *words], settings.folder / "logs" / "killed-holding.txt")
    held = _wait(lambda: _locked(settings), START_SECONDS, process)
    process.kill()
    process.wait()
    yield _clocks("clocks after SIGKILL of the runner", settings, bool(held))


def _clocks(name: str, settings: Settings, held: bool) -> Row:  # noqa: FBT001
    if not held:
        return Row(name, "not tested", "--no-pin" if not settings.pin else "the run held no clocks")
    return _gone(name, lambda: _locked(settings), None)


def _locked(settings: Settings) -> list[Any]:
    """Return what ``runner clocks show`` calls held."""
    done = subprocess.run(
        settings.command("clocks", None, "show", "--format", "json"), capture_output=True, cwd=ROOT, check=False
    )
    return [gpu["held"] for gpu in json.loads(done.stdout)["gpus"] if gpu["held"]] if done.stdout else []


def _gone(name: str, remaining: Callable[[], list[Any]], total: int | None) -> Row:
    """Return the row of what has to be gone after some seconds."""
    begin = time.monotonic()
    while (left := remaining()) and time.monotonic() - begin < GONE_SECONDS:
        time.sleep(0.1)
    seconds = time.monotonic() - begin
    count = "" if total is None else f" of {total}"
    detail = f"{len(left)}{count} remain after {seconds:.1f} s"
    return Row(name, "did not hold" if left else "held", detail, {"seconds": seconds, "left": len(left)})


def _wait(condition: Callable[[], Any], seconds: float, process: "subprocess.Popen[bytes]") -> Any:  # noqa: ANN401
    """Return the first true value; None after some seconds, or when the process has ended without it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended = process.poll() is not None
        value = condition()
        if value or ended:
            return value or None
        time.sleep(0.02)
    return None


def _with(settings: Settings, options: Options, reports: Path) -> list[str]:
    return settings.command("run", replace(options, reports=reports))
