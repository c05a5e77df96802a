"""A bisect and a reproduction through the real command line, in virtual environments with a planted slow-down."""

import json
import os
import secrets
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.analysis.analyse import analyse_run
from runner.backends.venv import VenvBackend
from runner.core.model import Spec
from runner.core.paths import cache_folder
from runner.store.run import Run
from tests.integration.conftest import Runner, journal_of, wait_for
from tests.support.slow_numpy import LARGE_NUMPY, SLOW_NUMPY, copy_with_code

CELL = "numpy-loop/rnn-step/rnn-b32-h128/forward/fp32"
MATRIX = """\
version: 1
environments:
{}
workloads:
  rnn-step: {{cases: [rnn-b32-h128], phases: [forward]}}
measure: {{controls: false, seconds: 0.05, threads: 1, margin: 0.4}}
"""
ENTRY = '  np-{0}: {{framework: numpy, release: "{1}", python: "3.11", lock: docker/locks/np-{0}.txt}}'
BISECT = ("bisect", CELL, "--good", "np-a", "--bad", "np-c", "--device", "cpu", "--backend", "venv", "--busy-ok")
SHORT = ("--max-rounds", "20")

Plant = Callable[[str, str], Path]


@pytest.fixture
def plant(runner: Runner) -> Iterator[Plant]:
    """Add an environment with NumPy from the shared one: a copy, with code added.

    Sessions share the folder of environments, so the names of the copies are random.
    """
    session = secrets.token_hex(8)
    backend = VenvBackend(cache_folder(os.environ))
    locks = runner.folder / "docker/locks"
    lock = locks / "numpy.txt"
    arguments = ("np-old", "--device", "cpu", "--backend", "venv")
    homes: list[Path] = []

    def planted(name: str, code: str) -> Path:
        assert runner("build", *arguments).returncode == 0 if not homes else True
        spec = Spec(environment="np-old", framework="numpy", release="2.4.6", python="3.11", lock=lock)
        before = backend.home(spec)
        copy = locks / f"{name}.txt"
        copy.write_text(f"{lock.read_text()}# {name} of {session}\n")
        home = backend.home(replace(spec, environment=name, lock=copy))
        homes.append(home)
        copy_with_code(before, home, code)
        return home

    yield planted
    for home in homes:
        shutil.rmtree(home, ignore_errors=True)


def test_a_planted_slow_down_is_named_and_an_interrupted_search_continues(runner: Runner, plant: Plant) -> None:
    for name, code in (("np-a", ""), ("np-b", SLOW_NUMPY), ("np-c", SLOW_NUMPY)):
        plant(name, code)
    entries = [ENTRY.format(letter, release) for letter, release in (("a", "2.4.4"), ("b", "2.4.5"), ("c", "2.4.6"))]
    (runner.folder / "matrix.yaml").write_text(MATRIX.format("\n".join(entries)))
    dry = runner.json(*BISECT, "--dry-run", "--format", "json")
    assert [candidate["name"] for candidate in dry["candidates"]] == ["np-a", "np-b", "np-c"]
    process = runner.start(*BISECT, *SHORT)
    wait_for(lambda: [*runner.folder.glob("reports/bisect/*/runs/[!.]*/records/*.json")])
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = runner(*BISECT, *SHORT, "--format", "json")
    assert done.returncode in (0, 1), done.stderr  # on a busy machine, what follows the change may stay undecided
    assert "continuing bisect" in done.stderr
    result = json.loads(done.stdout)
    (change,) = result["changes"]
    assert (change["before"]["name"], change["after"]["name"], change["named"]) == ("np-a", "np-b", True)
    assert change["ratio"] > 1.2
    assert change["plain_processes"]["rounds"] >= 1  # of the comparison that confirms it, though controls are off
    assert change["plain_processes"]["ratio"] > 1.2
    assert change["sources"] == []  # the three are copies of one NumPy
    assert result["sentences"][0].startswith(f"NumPy 2.4.5 made {CELL} ")
    assert len(result["steps"]) <= 5
    assert len([*runner.folder.glob("reports/bisect/*")]) == 1


@pytest.mark.slow
def test_a_planted_growth_of_memory_is_named_by_its_metric(runner: Runner, plant: Plant) -> None:
    for name, code in (("np-a", ""), ("np-b", LARGE_NUMPY), ("np-c", LARGE_NUMPY)):
        plant(name, code)
    entries = [ENTRY.format(letter, release) for letter, release in (("a", "2.4.4"), ("b", "2.4.5"), ("c", "2.4.6"))]
    (runner.folder / "matrix.yaml").write_text(MATRIX.format("\n".join(entries)))
    done = runner(*BISECT, *SHORT, "--metric", "memory", "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    (change,) = result["changes"]
    assert (change["before"]["name"], change["after"]["name"], change["named"]) == ("np-a", "np-b", True)
    assert change["value"] > change["base_value"] + 100 * 2**20
    assert result["question"]["metric"] == "memory"
    assert result["sentences"][0].startswith(f"{CELL}, peak memory of the steps: ")
    assert " with NumPy 2.4.5 than with NumPy 2.4.4, " in result["sentences"][0]
    assert "x more memory (" in result["sentences"][0]
    runs = [*runner.folder.glob("reports/bisect/*/runs/[!.]*")]
    assert runs
    for run in runs:
        assert journal_of(run)[0]["metrics"] == ["memory"]
        grade = analyse_run(Run.open(run)).grade
        assert grade is not None
        assert grade.figures.metric == "memory"


@pytest.mark.slow
def test_a_record_is_measured_again_in_an_environment_that_is_built_again(runner: Runner, plant: Plant) -> None:
    home = plant("np-a", "")
    matrix = runner.folder / "matrix.yaml"
    matrix.write_text(MATRIX.format(ENTRY.format("a", "2.4.6")))
    assert runner("run", "np-a", "--device", "cpu", "--backend", "venv").returncode == 0
    (run,) = runner.folder.glob("reports/runs/[!.]*")
    matrix.write_text(MATRIX.format(ENTRY.format("old", "2.4.6").replace("np-old.txt", "numpy.txt")))
    shutil.rmtree(home)
    record = next(run.glob("records/*.json"))
    done = runner("reproduce", str(record), "--busy-ok", "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    assert f"np-a: built again from the lock of run {run.name}, with the same digest" in done.stderr
    result = json.loads(done.stdout)
    (cell,) = result["cells"]
    assert cell["cell"] == f"np-a/{CELL}"
    assert cell["state"] in ("reproduced", "differs", "undecided")
    assert cell["ratio_low"] < cell["ratio"] < cell["ratio_high"]
    assert result["differences"] == []
    done = runner("reproduce", f"{run.name}/np-a", "--against", "np-old", "--busy-ok", "--format", "json")
    assert f"np-a: the environment of run {run.name} still exists" in done.stderr
    result = json.loads(done.stdout)
    assert result["in_turns"]
    assert result["cells"][0]["verdict"] not in ("not-comparable", "not-measured")
