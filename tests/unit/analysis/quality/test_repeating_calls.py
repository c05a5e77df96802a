"""Quality issue ``calls-differ``: its period is one of calls, and its severity that of the ratio."""

from pathlib import Path
from typing import Any

import numpy as np

from runner.analysis import dataset
from runner.analysis.model import QualityIssue
from runner.analysis.quality import quality_issues
from tests.support.fake_runs import cell, good, make

TURNS = 50
SIZE, LEADS = 2, 2


def issues(folder: Path, period: int, factor: float, **facts: object) -> list[QualityIssue]:
    """Return the issues of a step of which each so many-th call is slow, in turns of two samples after two leads."""
    records, draw = [], np.random.default_rng(1)
    numbers = np.array([number for number in range(TURNS * (SIZE + LEADS)) if number % (SIZE + LEADS) >= LEADS])
    for number in range(1, 4):
        for environment in ("torch-1.0", "torch-2.x"):
            slow = np.where((numbers + 5 * number) % period == 0, factor, 1.0)
            seconds = 0.002 * slow * np.exp(draw.normal(0, 0.01, len(numbers)))
            turns: dict[str, Any] = {
                "turns": [SIZE] * TURNS,
                "leads": [0.002] * LEADS * TURNS,
                "batch": 1,
                "first_call": 30,
            }
            records.append(good(cell(environment), number, seconds.tolist(), **{**turns, **facts}))
    all_issues = quality_issues(dataset.load_dataset(make(folder, records)))
    return [issue for issue in all_issues if issue.code == "calls-differ"]


def test_a_step_whose_calls_repeat_is_named_with_its_period(tmp_path: Path) -> None:
    (first, second) = issues(tmp_path, 8, 5.0, turns_with="1/0")
    assert {first.environment, second.environment} == {"torch-1.0", "torch-2.x"}
    assert first.sentence.startswith("its calls differ, and repeat every 8 calls: the slowest of them take ")
    assert not first.serious


def test_it_is_serious_where_sides_did_not_take_turns(tmp_path: Path) -> None:
    nothing: dict[str, object] = {"turns": None, "leads": None, "first_call": None}
    first, _ = issues(tmp_path, 8, 5.0, **nothing)
    assert first.serious


def test_samples_of_several_calls_are_named_as_such(tmp_path: Path) -> None:
    first, _ = issues(tmp_path, 8, 5.0, turns_with="1/0", batch=20)
    assert "repeat every 8 samples of 20 calls" in first.sentence


def test_equal_calls_have_no_issue(tmp_path: Path) -> None:
    assert issues(tmp_path, 8, 1.0, turns_with="1/0") == []
