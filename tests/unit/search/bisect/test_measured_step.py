"""Which row is about the metric of a search, and which release lacks a value that is not there."""

from pathlib import Path
from typing import Any

import pytest

from runner.analysis.analyse import Analysis, analyse_run
from runner.core.errors import RunnerError
from runner.core.model.cells import without_environment
from runner.matrix import Environment
from runner.releases.candidates import ReleaseCandidate
from runner.search.bisect.measured_step import UnmeasurableError, row_of
from runner.search.bisect.state import Question
from tests.support.fake_runs import cell, good, make, times

OLD, NEW = cell("torch-1.0"), cell("torch-2.x")


def candidate(name: str) -> ReleaseCandidate:
    environment = Environment(framework="torch", release="1.0", python="3.10", requirements=("torch==1.0",))
    return ReleaseCandidate(name=name, release="1.0", source="matrix", environment=environment)


BASE, OTHER = candidate(OLD.environment), candidate(NEW.environment)


def question(metric: str) -> Question:
    return Question(
        cell=without_environment(OLD.id),
        good=BASE.name,
        bad=OTHER.name,
        axis="release",
        every=False,
        environment="",
        device="cpu",
        backend="venv",
        metric=metric,
    )


def analysis(folder: Path, **facts: dict[str, Any]) -> Analysis:
    """Return what is concluded from five rounds of two releases with further facts."""
    records = [
        good(of, number, times(0.1), **facts[side]) for number in range(5) for of, side in ((OLD, "old"), (NEW, "new"))
    ]
    return analyse_run(make(folder, records), 0.02)


def test_a_step_is_of_the_row_of_its_metric(tmp_path: Path) -> None:
    of_old, of_new = ({"step_peak_bytes": size << 20, "installed_bytes": size << 30} for size in (100, 130))
    measured = analysis(tmp_path, old=of_old, new=of_new)
    values = {name: row_of(measured, question(name), BASE, OTHER).values for name in ("time", "memory", "size")}
    assert values == {"time": (0.1, 0.1), "memory": (100 << 20, 130 << 20), "size": (100 << 30, 130 << 30)}


@pytest.mark.parametrize(
    ("metric", "fact", "reason"),
    [
        ("memory", "step_peak_bytes", "it has no peak memory of the steps: the kernel does not report"),
        ("size", "installed_bytes", "it has no installed size: an older program measured it"),
    ],
)
def test_the_release_without_a_value_is_named_with_the_reason(
    tmp_path: Path, metric: str, fact: str, reason: str
) -> None:
    value = {fact: 2**30}
    with pytest.raises(UnmeasurableError, match=f"^error: {reason}"):
        row_of(analysis(tmp_path / "a", old=value, new={}), question(metric), BASE, OTHER)
    for name, of_new in (("b", value), ("c", {})):
        with pytest.raises(RunnerError, match=f"^error: torch-1.0 cannot be measured: {reason}") as raised:
            row_of(analysis(tmp_path / name, old={}, new=of_new), question(metric), BASE, OTHER)
        assert not isinstance(raised.value, UnmeasurableError), "the search cannot go on without its base"
        assert raised.value.problems[0].hint == "choose another end"
