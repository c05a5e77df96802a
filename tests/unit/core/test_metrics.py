"""The table of metrics, and how ``--metric`` is read."""

from collections.abc import Sequence

import pytest

from runner.core.errors import UsageError
from runner.core.facts import FACTS
from runner.core.metrics import BY_CONDITION, BY_NAME, METRICS, OTHERS, Metric, parse_metrics


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: str(metric.name))
def test_a_metric_is_complete(metric: Metric) -> None:
    columns = {fact.name for fact in FACTS if fact.column == "value"}
    assert {metric.on_cpu, metric.on_gpu} - {""} <= columns
    assert 0 < metric.margin < 1
    assert (metric.worse, metric.better) in {("slower", "faster"), ("more", "less"), ("more", "fewer")}
    assert metric.title
    assert metric.method
    assert metric.absent
    if metric in OTHERS:
        assert metric.quantile or metric.on_cpu or metric.on_gpu
        assert metric.resolution > 0


@pytest.mark.parametrize(
    ("phase", "memory", "energy"),
    [
        ("train", True, True),
        ("recompile", True, True),  # a phase that a network has named itself
        ("compile", False, False),
        ("compile-warm", False, False),
        ("train+published", True, False),
    ],
)
def test_phases_have_the_metrics_that_they_can_have(phase: str, *, memory: bool, energy: bool) -> None:
    for name, has in (("memory", memory), ("energy", energy)):
        assert (BY_NAME[name].why_absent_in(phase) == "") is has


def test_names_and_conditions_are_unique() -> None:
    assert len(BY_NAME) == len(BY_CONDITION) == len(METRICS) == len(OTHERS) + 1
    assert "slower" in BY_CONDITION


@pytest.mark.parametrize(
    ("texts", "names"),
    [([], ()), (["memory"], ("memory",)), (["memory, size", "memory"], ("memory", "size")), (["all"], tuple(BY_NAME))],
)
def test_names_are_read(texts: Sequence[str], names: Sequence[str]) -> None:
    assert parse_metrics(texts) == names


def test_a_mistake_is_an_error_with_a_hint() -> None:
    with pytest.raises(UsageError, match="there is no metric 'memry'") as error:
        parse_metrics(["memry"])
    assert "did you mean memory?" in str(error.value)
    with pytest.raises(UsageError) as error:
        parse_metrics(["x"])
    assert "there are time, memory," in str(error.value)
