"""Runs with confused types or accidental damage: each command ends with a sentence, and no sample changes unnoticed.

``DAMAGED_RUNS=1500 pytest tests/unit/store/test_run_damaged.py`` tries that many of each kind, and CI a few.
"""

import os
import random
from pathlib import Path

import pandas as pd
import pytest

from runner.analysis import dataset
from runner.store.run import Run
from tests.support.damaged_runs import KINDS, commands, confuse, copied, damage, outcome, small_run

TRIALS = int(os.environ.get("DAMAGED_RUNS", "6"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """Two sound runs; copies of the first, which is newer, are damaged."""
    folder = tmp_path_factory.mktemp("sound")
    return small_run(folder, later=20), small_run(folder, later=10)


@pytest.fixture
def reports(tmp_path: Path, sound: tuple[Run, Run]) -> Path:
    """Return a reports folder that has the older run."""
    copied(sound[1], tmp_path)
    return tmp_path


def outcomes(reports: Path, run: Run, other: Run) -> dict[str, tuple[str, str]]:
    """Return how each command ends."""
    return {name: outcome(command) for name, command in commands(reports, run, other).items()}


def test_each_command_reads_the_sound_run(reports: Path, sound: tuple[Run, Run]) -> None:
    results = outcomes(reports, copied(sound[0], reports), Run(reports / "runs" / sound[1].id))
    assert results == dict.fromkeys(results, ("ok", ""))


@pytest.mark.simulation
def test_no_command_ends_with_a_traceback_where_types_are_confused(reports: Path, sound: tuple[Run, Run]) -> None:
    draw = random.Random(11)
    other = Run(reports / "runs" / sound[1].id)
    for _ in range(TRIALS):
        run = copied(sound[0], reports)
        done = confuse(run, draw)
        tracebacks = {name: text for name, (how, text) in outcomes(reports, run, other).items() if how == "traceback"}
        assert not tracebacks, done


@pytest.mark.simulation
def test_no_damage_changes_samples_unnoticed(reports: Path, sound: tuple[Run, Run]) -> None:
    draw = random.Random(11)
    other = Run(reports / "runs" / sound[1].id)
    expected = _samples(sound[0])
    for trial in range(TRIALS):
        run = copied(sound[0], reports)
        done = damage(run, KINDS[trial % len(KINDS)], draw)
        results = outcomes(reports, run, other)
        assert {how for how, _ in results.values()} <= {"ok", "error"}, (done, results)
        how, warned = results["samples"]
        assert how == "error" or warned or _samples(run).equals(expected), done


def _samples(run: Run) -> pd.DataFrame:
    return dataset.load_dataset(run).samples
