"""An explanation through the real command line, in virtual environments with a slow-down that a switch takes back."""

import json
import os
import secrets
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.backends.venv import VenvBackend
from runner.core.model import Spec
from runner.core.paths import cache_folder
from tests.integration.conftest import Runner, wait_for
from tests.support.slow_numpy import SLOW_WITHOUT_VARIABLE, copy_with_code

CELL = "numpy-loop/rnn-step/rnn-b32-h128/forward/fp32"
ENTRY = '  np-{0}: {{framework: numpy, release: "2.4.6", python: "3.11", lock: docker/locks/np-{0}.txt}}'
MATRIX = f"""\
version: 1
environments:
{ENTRY.format("old")}
{ENTRY.format("new")}
workloads:
  rnn-step: {{cases: [rnn-b32-h128], phases: [forward]}}
measure: {{controls: false, seconds: 0.05, threads: 1, margin: 0.4}}
"""
EXPLAIN = ("explain", "np-old", "np-new", CELL, "--device", "cpu", "--backend", "venv", "--busy-ok", "--rounds", "4")


@pytest.fixture
def two_releases(runner: Runner) -> Iterator[None]:
    """Two environments of NumPy in the matrix; in the second, NumPy is slow unless a variable is set."""
    backend, locks, session = (
        VenvBackend(cache_folder(os.environ)),
        runner.folder / "docker/locks",
        secrets.token_hex(8),
    )
    assert runner("build", "np-old", "--device", "cpu", "--backend", "venv").returncode == 0
    lock, homes = locks / "numpy.txt", list[Path]()
    spec = Spec(environment="np-old", framework="numpy", release="2.4.6", python="3.11", lock=lock)
    built = backend.home(spec)
    for name, code in (("np-old", ""), ("np-new", SLOW_WITHOUT_VARIABLE)):
        copy = locks / f"{name}.txt"
        copy.write_text(f"{lock.read_text()}# {name} of {session}\n")
        homes.append(backend.home(replace(spec, environment=name, lock=copy)))
        copy_with_code(built, homes[-1], code)
    (runner.folder / "matrix.yaml").write_text(MATRIX)
    yield
    for home in homes:
        shutil.rmtree(home, ignore_errors=True)


@pytest.mark.usefixtures("two_releases")
def test_a_switch_that_takes_a_slow_down_back_is_named_and_an_interrupted_explanation_continues(runner: Runner) -> None:
    dry = runner.json(*EXPLAIN, "--dry-run", "--format", "json")
    assert {"keep-memory", "one-arena"} <= {each["name"] for each in dry["candidates"]}
    assert dry["builds"] == 0
    assert not [*runner.folder.glob("reports/explain/*")]
    process = runner.start(*EXPLAIN)
    wait_for(lambda: [*runner.folder.glob("reports/explain/*/runs/[!.]*/records/*.json")])
    process.send_signal(signal.SIGKILL)
    process.communicate()
    done = runner(*EXPLAIN, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert "continuing run " in done.stderr
    result = json.loads(done.stdout)
    effects = {each["name"]: each["effect"] for each in result["candidates"]}
    assert effects.pop("keep-memory") == "takes back"
    assert "takes back" not in effects.values()
    share = next(each["share"] for each in result["candidates"] if each["name"] == "keep-memory")
    assert 0.6 < share["estimate"] < 1.4
    assert result["change"]["ratio"] > 1.5
    assert result["together"] is None
    assert len([*runner.folder.glob("reports/explain/*/runs/[!.]*")]) == 1
