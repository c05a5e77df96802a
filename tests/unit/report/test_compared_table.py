"""The lines of tests on a terminal: what they lose where it is narrow, and what stands for the verdict."""

from typing import Any

import pytest

from runner.analysis.comparison_model import LEANING, Comparison, Row
from runner.analysis.model import QualityIssue
from runner.report import compared_table, rich_text
from tests.support.fake_runs import cell

LONG = "device-002-vanilla-h64-b1-t96"


def row(case: str = LONG, phase: str = "forward", slug: str = "nn-rnn", **changes: Any) -> Row:
    parts = {"workload": changes.pop("workload", "deepbench-rnn"), "case": case, "phase": phase}
    values = {"ratio": 0.5, "ratio_low": 0.45, "ratio_high": 0.55, "rounds": 5, "verdict": "faster", **changes}
    return Row(base=cell("torch-1.0", slug, **parts), other=cell("torch-2.x", slug, **parts), **values)


def lines(*rows: Row, width: int) -> list[str]:
    comparison = Comparison(base="torch-1.0", others=("torch-2.x",), device="cpu", device_name="", rows=rows)
    return rich_text.as_text([compared_table.table(comparison, "torch-2.x", width)], width).splitlines()[1:]


def test_a_narrow_table_loses_the_workload_first_and_then_the_middle_of_the_case() -> None:
    rows = (row(), row(phase="backward", ratio=2.0, verdict="slower"))
    wide, narrow, narrowest = (lines(*rows, width=width) for width in (100, 64, 48))
    assert wide[1].startswith(f"  deepbench-rnn/{LONG} forward, nn-rnn ")
    assert narrow[1].startswith(f"  {LONG} forward, nn-rnn ")
    assert narrowest[1].startswith("  dev")
    assert " forward, nn-rnn  2.00x faster" in narrowest[1]
    assert all(len(line) <= 48 for line in narrowest)
    assert "2.00x slower" in wide[0], "the slowest comes first"


def test_names_that_are_the_same_without_their_middle_have_a_number() -> None:
    middle = [row(f"lstm-b{batch}-of-a-long-name-h64-t96") for batch in (1, 2)]
    everywhere = [row(f"lstm-of-a-long-name-{number:03}-that-does-not-fit-here") for number in range(12)]
    for rows in (middle, everywhere, [*middle, *everywhere]):
        names = [line.partition("  2.00x")[0].strip() for line in lines(*rows, width=44)]
        assert len(set(names)) == len(rows)
        assert all(len(line) <= 44 for line in lines(*rows, width=44))
    assert " #2  2.00x" in lines(*middle, width=44)[1]


def test_the_interval_column_says_that_rounds_show_nothing() -> None:
    (line,) = lines(row(ratio_low=1 / 13858, ratio_high=296383.0, verdict="inconclusive"), width=100)
    assert "can't tell  the rounds show nothing" in line


def test_times_give_way_before_the_intervals() -> None:
    of_times = row(base_seconds=1e-3, seconds=5e-4)
    (wide,), (narrow,), (narrowest,) = (lines(of_times, width=width) for width in (130, 100, 70))
    assert "1000 µs" in wide
    assert "1.82x to 2.22x" in wide
    assert "1000 µs" not in narrow
    assert "1.82x to 2.22x" in narrow
    assert "1.82x to 2.22x" not in narrowest


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, "2.00x faster"),
        ({"ratio": 0.95}, "5.3 % faster"),
        ({"verdict": "inconclusive", "code": LEANING}, "probably 2.00x faster"),
        ({"verdict": "inconclusive", "code": "more-rounds"}, "can't tell"),
        ({"verdict": "inconclusive", "code": "more-rounds", "rounds": 1}, "2.00x faster, one round"),
        ({"verdict": "same", "ratio": 1.001}, "same"),
        ({"verdict": "not-comparable"}, "not comparable (2.00x faster)"),
    ],
)
def test_the_change_is_the_verdict_with_its_size(changes: dict[str, Any], shown: str) -> None:
    (line,) = lines(row(**changes), width=60)
    assert line.endswith(f"nn-rnn  {shown}")


def test_a_test_with_a_serious_warning_has_a_question_mark() -> None:
    issue = QualityIssue(code="trend", sentence="rises", serious=True, environment="torch-1.0", cell=row().base.id)
    (line,) = lines(row(quality_issues=(issue,)), width=60)
    assert line.endswith("2.00x faster ?")


def test_what_was_not_measured_has_no_line_next_to_others() -> None:
    missing = row(case="other", ratio=None, ratio_low=None, ratio_high=None, verdict="not-measured")
    assert len(lines(row(), missing, width=80)) == 1
    assert lines(missing, width=80)[0].endswith("not measured")


def test_bars_share_a_scale_and_begin_at_the_same_line() -> None:
    faster, slower = (
        line.partition("│") for line in reversed(lines(row(ratio=0.25), row(ratio=2.0, verdict="slower"), width=160))
    )
    assert faster[2].startswith("████████")
    assert slower[0].endswith("████")
    assert len(faster[0]) == len(slower[0])


def test_a_network_of_the_user_keeps_its_name_in_a_narrow_table() -> None:
    rows = [row(workload="my_network", case=case, slug="model", phase="train") for case in ("default", "wide")]
    assert [line.split(",")[0] for line in lines(*rows, width=48)] == ["  my_network train", "  my_network/wide train"]


def test_a_table_without_tests_has_its_head_alone() -> None:
    assert lines(width=80) == []
