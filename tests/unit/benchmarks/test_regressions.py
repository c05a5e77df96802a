"""The verdict of a regression or control, the score, and the page that a further run continues."""

from pathlib import Path

import pytest

from benchmarks.continued_page import cells, known
from benchmarks.regression_index import NAME, Entry, read_index
from benchmarks.regressions import Result, line, outcome, result, score, write
from runner.analysis.comparison_model import Row, Verdict
from runner.core.model import Cell

LOOP = Entry(
    source="jax-ml/jax#25190",
    claim="A loop is slower.",
    good="jax==0.4.31",
    bad="jax==0.4.33",
    file="loop.py",
    case="default",
    phase="forward",
    metric="time",
    sign="worse",
    cpu=True,
)
CONTROL = LOOP.model_copy(update={"source": "", "claim": "Nothing changed.", "sign": "same"})
ENTRIES = {"slow-loop": LOOP, "slow-scan": LOOP, "equal-loop": CONTROL, "equal-scan": CONTROL}


def row(verdict: Verdict, metric: str = "time", phase: str = "forward") -> Row:
    """Return a row of the two releases of LOOP."""
    base, other = (
        Cell(
            environment=environment,
            implementation="jax",
            workload="loop",
            case="default",
            phase=phase,
            precision="fp32",
        )
        for environment in ("jax-0.4.31", "jax-0.4.33")
    )
    return Row(base=base, other=other, verdict=verdict, metric=metric, ratio=2.0, ratio_low=1.5, ratio_high=2.5)


def line_of(name: str, word: str) -> str:
    return line(
        name, ENTRIES[name], Result(verdict="a | b", ratio="2 (1.5 to 2.5)", grade="good", outcome=word), 1.5, 0.2
    )


@pytest.mark.parametrize(
    ("sign", "verdict", "expected"),
    [
        ("worse", "slower", "right"),
        ("worse", "more", "right"),
        ("worse", "faster", "wrong"),
        ("worse", "less", "wrong"),
        ("worse", "same", "wrong"),
        ("worse", "inconclusive", "undecided"),
        ("worse", "not-comparable", "failed"),
        ("same", "same", "right"),
        ("same", "same-median", "right"),
        ("same", "slower", "wrong"),
        ("same", "less", "wrong"),
        ("same", "inconclusive", "undecided"),
        ("same", "not-measured", "failed"),
    ],
)
def test_the_outcome_of_a_verdict(sign: str, verdict: Verdict, expected: str) -> None:
    assert outcome(sign, verdict) == expected


def test_the_row_of_the_metric_and_the_phase_decides() -> None:
    rows = [row("faster", phase="train"), row("less", metric="memory"), row("slower")]
    assert result(LOOP, rows, "good") == Result(verdict="slower", ratio="2 (1.5 to 2.5)", grade="good", outcome="right")
    assert result(LOOP, rows[:2], "good") is None


def test_an_open_verdict_is_undecided_and_not_wrong() -> None:
    of_run = result(LOOP, [row("inconclusive")], "poor")
    assert of_run == Result(verdict="can't tell", ratio="2 (1.5 to 2.5)", grade="poor", outcome="undecided")


def test_the_score_counts_regressions_and_controls_apart() -> None:
    lines = {"slow-loop": line_of("slow-loop", "right"), "equal-loop": line_of("equal-loop", "wrong")}
    assert score(ENTRIES, lines) == (
        "1 of 2 regressions were measured: 1 right, 0 wrong, 0 undecided, 0 failed. "
        "1 of 2 equal controls were measured: 0 right, 1 wrong, 0 undecided, 0 failed."
    )
    lines = {name: line_of(name, word) for name, word in zip(ENTRIES, ("undecided", "failed") * 2, strict=True)}
    assert score(ENTRIES, lines).count("0 right, 0 wrong, 1 undecided, 1 failed") == 2


def test_a_page_keeps_its_lines_and_lists_what_is_not_measured(tmp_path: Path) -> None:
    page, made = tmp_path / "page.md", {"slow-loop": line_of("slow-loop", "right")}
    write(page, ENTRIES, made)
    assert known(page, NAME) == made
    content = page.read_text("utf-8")
    assert "- `equal-loop`, control: Nothing changed." in content.partition("## Not measured yet")[2]
    write(page, ENTRIES, {**known(page, NAME), "equal-loop": line_of("equal-loop", "right")})
    assert list(known(page, NAME)) == ["slow-loop", "equal-loop"]


def test_a_bar_in_a_verdict_divides_no_cell() -> None:
    assert cells(line_of("slow-loop", "failed"))[5:9] == ["a \\| b", "2 (1.5 to 2.5)", "good", "failed"]


def test_the_page_in_docs_has_no_entry_that_the_index_lacks() -> None:
    page = Path(__file__).parents[3] / "docs" / "regressions.md"
    assert set(known(page, NAME)) <= set(read_index())
