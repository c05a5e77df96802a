"""The words for metrics other than time."""

from dataclasses import replace
from typing import Any

import pytest

from runner.analysis.comparison_model import LEANING, Row
from runner.report import metric_text
from runner.report.formatting import DASH
from tests.support.fake_runs import cell

MIB = 2.0**20


def row(metric: str = "memory", ratio: float | None = 1.3, verdict: Any = "more", **fields: Any) -> Row:
    values = {"base_amount": 100 * MIB, "amount": 130 * MIB, "ratio_low": 1.25, "ratio_high": 1.35, **fields}
    return Row(base=cell("torch-1.0"), other=cell(), metric=metric, ratio=ratio, verdict=verdict, **values)


@pytest.mark.parametrize(
    ("metric", "ratio", "text"),
    [
        ("memory", 1.3, "1.30x more memory"),
        ("memory", 0.5, "2.00x less memory"),
        ("memory", 1.001, "0.1 % more memory"),
        ("memory", 0.95, "5.0 % less memory"),
        ("memory", 1.0, "0.0 %"),
        ("memory", None, DASH),
        ("import", 0.43, "2.33x faster to import"),
        ("first-call", 1.2, "1.20x slower in the first call"),
        ("size", 1.1, "10 % more on disk"),
        ("energy", 1.1, "10 % more energy"),
        ("instructions", 0.5, "2.00x fewer instructions"),
        ("instructions", 0.95, "5.0 % fewer instructions"),
    ],
)
def test_a_change_has_its_direction_and_its_noun(metric: str, ratio: float | None, text: str) -> None:
    assert metric_text.change(row(metric, ratio)) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.25, 1.35, "1.25x to 1.35x"),
        (0.5, 0.8, "1.25x to 2.00x"),
        (0.8, 1.1, "10 % more to 1.25x less"),
        (None, None, ""),
    ],
)
def test_an_interval_begins_with_the_smaller_change(low: float | None, high: float | None, text: str) -> None:
    assert metric_text.ends(row(ratio_low=low, ratio_high=high)) == text


def test_values_have_the_unit_of_their_metric() -> None:
    assert metric_text.amounts(row()) == "100 MiB → 130 MiB"
    assert metric_text.amounts(row("import", base_amount=2.1, amount=0.9)) == "2.10 s → 900 ms"
    assert metric_text.amounts(row("size", base_amount=2e9, amount=None)) == f"2.00 GB → {DASH}"
    assert metric_text.amounts(row("instructions", base_amount=2.5e6, amount=0.9e6)) == "2.50 million → 900 thousand"


def test_a_line_says_what_was_measured() -> None:
    test = "asr-lstm/1x320-ce-short train, nn-lstm, 1.0 → 2.x"
    assert metric_text.line(row(), "1.0", "2.x") == f"1.30x more memory (1.25x to 1.35x), 100 MiB → 130 MiB: {test}"
    assert metric_text.line(row("size"), "1.0", "2.x").endswith(": installed size, 1.0 → 2.x")


def test_words_of_open_rows() -> None:
    assert metric_text.word(row(verdict="inconclusive", code="more-rounds")) == "can't tell"
    assert metric_text.word(row(verdict="inconclusive", code=LEANING)) == "probably more"
    assert metric_text.word(row(verdict="inconclusive", code=LEANING, ratio=0.8)) == "probably less"
    assert metric_text.word(row(verdict="not-comparable")) == "not comparable"


def test_the_largest_change_comes_first() -> None:
    rows = [row(ratio=1.1), row(ratio=0.5, verdict="less"), row(ratio=1.3), row(ratio=3.0, verdict="same")]
    assert [each.ratio for each in metric_text.changed(rows)] == [0.5, 1.3, 1.1]


def test_the_command_for_all_metrics_names_the_environments_once() -> None:
    changes = [(row(), "1.0", "2.x"), (row("size"), "1.0", "2.x")]
    assert metric_text.all_commands(changes) == "runner compare torch-1.0 torch-2.x --metric all"


def test_a_command_compares_with_one_base_and_further_bases_are_counted() -> None:
    sides = [("torch-1.12", "torch-2.x"), ("tf-1.8", "tf-2.x"), ("jax-0.4", "jax")]
    of_others = [(replace(row(), base=cell(base), other=cell(other)), base, other) for base, other in sides]
    changes = [of_others[0], (row(), "1.0", "2.x"), (row("size"), "1.0", "2.x"), *of_others[1:]]
    commands = ["runner compare torch-1.0 torch-2.x --metric all", "runner compare torch-1.12 torch-2.x --metric all"]
    assert metric_text.all_commands(changes[:3]) == "; ".join(commands)
    assert metric_text.all_commands(changes, "`") == f"`{commands[0]}`; `{commands[1]}`; and so for 2 other bases"
