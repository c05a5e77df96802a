"""Nights that are killed in each of their stages: nothing is lost or counted twice, and the next night goes on.

``RUNNER_KILLS=50 pytest tests/integration/test_killed_nights.py -s`` kills fifty nights and prints what became of each.
Without it these tests are skipped; ``test_following_nights`` kills one night.
"""

import json
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest

from runner.nights.night import Stage
from runner.store.run import Run
from tests.integration.conftest import Runner, alive, children, containers, wait_for
from tests.integration.test_following_nights import NIGHT, index, nights, served
from tests.support.package_index import PackageIndex, wheel

__all__ = ["index", "served"]

pytestmark = pytest.mark.skipif("RUNNER_KILLS" not in os.environ, reason="RUNNER_KILLS says how often to kill")

KILLS = int(os.environ.get("RUNNER_KILLS", "0"))
STAGES: tuple[str, ...] = ("confirm", "resolve", "measure", "compare", "alert")
"""In this order, so that few kills are of the stages that take long."""
SEED = 20261124
SHORT = ("--budget", "2m")
LOCK_COMMENT = "# night {}\n"


def in_stage(folder: Path, known: set[str], stage: str) -> bool:
    """Return True once a new night is in a stage, or beyond it."""
    order = get_args(Stage)
    for path in folder.glob("reports/nights/*.json"):
        if path.stem not in known:
            reached: str = json.loads(path.read_text())["stage"]
            return order.index(reached) >= order.index(stage)
    return False


def kill_in(runner: Runner, stage: str, seconds: float, *words: str) -> str:
    """Kill a night some seconds into a stage; return what became of it."""
    known = {night["run"] for night in nights(runner)}
    process = runner.start(*words)
    wait_for(lambda: process.poll() is not None or in_stage(runner.folder, known, stage), 120)
    time.sleep(seconds)
    below = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_for(lambda: not [pid for pid in below if alive(pid)])
    if process.returncode != -signal.SIGKILL:
        return f"ended with {process.returncode} before"
    (night,) = [night for night in nights(runner) if night["run"] not in known]
    return f"killed while {night['state']} in {night['stage']}"


def check_kept(runner: Runner) -> None:
    """Check that each record of each run counts once, and that the history holds each run once and is not damaged."""
    for path in runner.folder.glob("reports/runs/[!.]*/plan.json"):
        run = Run.open(path.parent)
        counted = Counter((record.cell.id, record.round) for record in run.records())
        assert set(counted.values()) <= {1}
    with closing(sqlite3.connect(runner.folder / "reports/history.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        twice = "SELECT run_id, cell_id FROM measurements GROUP BY run_id, cell_id HAVING count(*) > 1"
        assert connection.execute(twice).fetchall() == []
        known = {run for (run,) in connection.execute("SELECT run FROM runs")}
    ended = {night["run"] for night in nights(runner) if night["state"] == "done"}
    assert ended <= known


def none_left(runs: Sequence[str]) -> bool:
    """Return True if no container of some runs is there."""
    return not containers(*runs)


def states(runner: Runner) -> Counter[str]:
    """Return how many nights have each state."""
    return Counter(night["state"] for night in nights(runner))


def test_a_night_that_is_killed_in_any_stage_is_named_and_the_next_goes_on(runner: Runner, index: PackageIndex) -> None:
    draw = random.Random(SEED)
    assert runner(*NIGHT, *SHORT).returncode == 0
    killed = 0
    for number in range(KILLS):
        index.wheels[f"1.{number + 1}"] = wheel(f"1.{number + 1}", "")  # another release, so that there is a change
        stage, seconds = STAGES[number % len(STAGES)], draw.uniform(0, 1.5) * (number % 2)
        outcome = kill_in(runner, stage, seconds, *NIGHT, *SHORT)
        print(f"{stage} + {seconds:.1f} s: {outcome}")  # noqa: T201
        killed += outcome.startswith("killed while running")
        check_kept(runner)
    after = runner(*NIGHT, *SHORT)
    assert after.returncode == 0, after.stdout + after.stderr
    assert states(runner)["running"] == 0
    assert states(runner)["killed"] == killed >= 1
    assert nights(runner)[-1]["state"] == "done"
    check_kept(runner)


@pytest.mark.docker
def test_a_killed_night_leaves_no_container(runner: Runner) -> None:
    words: tuple[str, ...] = ("nightly", "np-old", "--preset", "tiny", "--device", "cpu", "--threads", "1")
    words = (*words, "--backend", "docker", *SHORT)
    lock = runner.folder / "docker/locks/numpy.txt"
    assert runner(*words).returncode == 0
    for number, stage in enumerate(("measure", "confirm") * max(1, KILLS // 4)):
        if stage == "confirm":
            lock.write_text(lock.read_text() + LOCK_COMMENT.format(number))
        print(f"{stage}: {kill_in(runner, stage, 1.0, *words)}")  # noqa: T201
        wait_for(partial(none_left, [path.name for path in runner.folder.glob("reports/**/runs/[!.]*")]))
    done: dict[str, Any] = runner.json(*words, "--format", "json")
    assert done["state"] == "done"
    assert "was killed" in " ".join(done["notes"])
    assert states(runner)["running"] == 0
