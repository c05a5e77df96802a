"""The outputs for a run and a comparison: complete, with units, and self-contained."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from runner.analysis import dataset
from runner.analysis.analyse import analyse, analyse_run
from runner.analysis.compare import compare
from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.model import Dataset
from runner.core.errors import UsageError
from runner.core.model import Cell, Skip
from runner.report import FORMATS, comparison_notes, formatting, render, report, rich_text, terminal, wording
from runner.report.accuracy import Worst, accuracy
from runner.report.accuracy import text as accuracy_text
from tests.support.fake_runs import bad, cell, good, make, realistic, rounds
from tests.support.html import html_text

ROW_KEYS = [
    "environment",
    "implementation",
    "base_implementation",
    "workload",
    "case",
    "phase",
    "precision",
    "base_seconds",
    "seconds",
    "ratio",
    "ratio_low",
    "ratio_high",
    "rounds",
    "verdict",
    "code",
    "reason",
    "doubts",
    "p_value",
    "level",
    "deciding_low",
    "deciding_high",
    "more_rounds_low",
    "more_rounds",
    "abandoned",
    "device_name",
    "boards",
    "mean_ratio",
    "mean_ratio_low",
    "mean_ratio_high",
    "base_p95_seconds",
    "p95_seconds",
    "metric",
    "base_amount",
    "amount",
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return dataset.load_dataset(realistic(tmp_path_factory.mktemp("reports")))


@pytest.fixture(scope="module")
def page(results: Dataset) -> str:
    return str(report(analyse(results))["index.html"])


@pytest.fixture(scope="module")
def comparison(results: Dataset) -> Comparison:
    return compare([results], "torch-1.0", ["torch-2.x", "torch-1.12", "tf-2.x"])


def with_reasons(comparison: Comparison, width: int, *, colour: bool = False) -> str:
    """Return what a terminal shows with ``--why``."""
    return terminal.text(comparison, width=width, colour=colour, why=True)


def test_a_report_is_four_files(results: Dataset) -> None:
    files = report(analyse(results))
    assert list(files) == ["index.html", "report.md", "samples.csv", "summary.json"]
    assert isinstance(files["samples.csv"], bytes)
    assert files["samples.csv"].count(b"\n") == 8401


def test_names_and_reasons_are_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> | *x*"
    run = make(tmp_path, [good(cell(), 0, [1.0], device=evil), bad(cell("torch-1.0"), 0, "crash", evil)], cpu=evil)
    files = report(analyse_run(run))
    assert "<script" not in str(files["index.html"])
    assert "&lt;script&gt;" in str(files["index.html"])
    assert r"\<script\>alert(1)\</script\> \| \*x\*" in str(files["report.md"])


def test_a_run_without_a_good_record_still_has_a_report(tmp_path: Path) -> None:
    run = make(
        tmp_path, [bad(cell(), 0, "import", "no module named torch")], {cell("torch-0.4"): Skip("no-engine", "none")}
    )
    files = report(analyse_run(run))
    assert "No test of this run has a good record" in str(files["index.html"])
    assert "no module named torch" in str(files["report.md"])


def test_json_has_the_keys_that_scripts_rely_on(comparison: Comparison) -> None:
    document = json.loads(render(comparison, "json"))
    assert document["version"] == 1
    assert (document["base"], document["others"], document["device"]) == (
        "torch-1.0",
        ["torch-2.x", "torch-1.12", "tf-2.x"],
        "cpu",
    )
    assert all(list(row) == ROW_KEYS for row in document["rows"])
    missing = next(row for row in document["rows"] if row["verdict"] == "not-measured")
    assert (missing["seconds"], missing["ratio"], missing["code"]) == (None, None, "wrong-result")


def test_what_a_comparison_can_call_is_in_every_format_except_csv(comparison: Comparison) -> None:
    change = comparison.detectable_change
    assert change is not None
    document = json.loads(render(comparison, "json"))
    assert (document["detectable_change"], document["detectable_rounds"]) == (change, [*comparison.detectable_rounds])
    for form in ("md", "html"):
        assert "changes above about" in re.sub(r"\s+", " ", render(comparison, form))
    assert f"changes of {wording.amount(1 + change)} or more show" in render(comparison, "table", width=60)
    assert "detectable" not in render(comparison, "csv")


def test_a_run_that_can_call_no_change_says_so_and_names_no_wild_factor(comparison: Comparison) -> None:
    wild = replace(comparison, detectable_change=2466898.0)
    for form in ("md", "html"):
        shown = re.sub(r"\s+", " ", render(wild, form))
        assert "no change can be called in 8 of 10 runs" in shown
        assert "2466899" not in shown
    assert "\nno change can be seen; " in render(wild, "table", width=60)


@pytest.mark.parametrize(
    ("change", "rounds", "text"),
    [
        (0.0917, (3,), "with 3 rounds and this noise, changes above about 9.2 % can be called in 8 of 10 runs"),
        (0.42, (3, 4, 5), "with 3 to 5 rounds and this noise, changes above about 1.42x can be called in 8 of 10 runs"),
        (2.71, (2,), "with 2 rounds and this noise, changes above about 3.7x can be called in 8 of 10 runs"),
        (None, (), ""),
    ],
)
def test_the_sentence_of_what_can_be_called(
    comparison: Comparison, change: float | None, rounds: tuple[int, ...], text: str
) -> None:
    changed = replace(comparison, detectable_change=change, detectable_rounds=rounds)
    assert comparison_notes.detectable_sentence(changed) == text
    assert comparison_notes.detectable_sentences([changed]) == ([f"{text[0].upper()}{text[1:]}."] if text else [])
    expected = [f"Against torch-1.0: {text}."] * 2 if text else []
    assert comparison_notes.detectable_sentences([changed, changed]) == expected


def test_differences_are_in_every_format_except_csv(comparison: Comparison) -> None:
    by_environment = json.loads(render(comparison, "json"))["differences"]
    assert list(by_environment) == ["torch-2.x", "torch-1.12", "tf-2.x"]
    assert by_environment["torch-2.x"] == [{"name": "torch", "base": "1.0", "other": "2.x", "kind": "framework"}]
    sentence = "between torch-1.0 and torch-2.x only torch differs: 1.0, 2.x"
    for text in (render(comparison, "md"), render(comparison, "html"), with_reasons(comparison, 60)):
        assert sentence in re.sub(r"\s+", " ", text)
    page = render(comparison, "html")
    assert page.partition("What else differs")[2].count("<details>") == 3
    assert "<td>framework</td><td>torch 1.0</td><td>tensorflow 2.x</td>" in page
    assert "| framework | torch 1.0 | tensorflow 2.x |" in render(comparison, "md")
    assert "only torch differs" not in render(comparison, "csv")


def test_a_report_has_the_differences_below_its_verdicts(results: Dataset, page: str) -> None:
    sentence = "between torch-1.0 and torch-1.12 only torch differs: 1.0, 1.12"
    assert f"<summary>{sentence}</summary>" in page
    assert f"- {sentence}" in str(report(analyse(results))["report.md"])


def test_csv_has_the_same_rows(comparison: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(render(comparison, "csv"))))
    assert list(rows[0]) == ["base", *ROW_KEYS]
    assert [float(row["ratio"]) for row in rows if row["ratio"]] == [row.ratio for row in comparison.rows if row.ratio]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_names_every_environment_implementation_and_verdict(comparison: Comparison, form: str) -> None:
    text = with_reasons(comparison, 120) if form == "table" else render(comparison, form)
    for row in comparison.rows:
        verdict = {"not-measured": "measured", "inconclusive": "tell"}.get(row.verdict, row.verdict)
        verdict = row.verdict if form in ("json", "csv") else verdict
        assert {row.environment, row.implementation, verdict} <= set(
            re.split(r'[\s|,"<>:/]+', text.replace("\\", "").replace("*", ""))
        )


@pytest.mark.parametrize("width", [44, 60, 80, 120])
@pytest.mark.parametrize("colour", [True, False])
def test_a_table_fits_its_terminal_without_cutting_words(comparison: Comparison, width: int, *, colour: bool) -> None:
    lines = re.sub(r"\x1b\[[0-9;]*m", "", with_reasons(comparison, width, colour=colour)).splitlines()
    assert max(map(len, lines)) <= width
    assert any("not measured" in line for line in lines)
    assert any("can't tell" in line for line in lines)
    assert ("\x1b[" in render(comparison, "table", width=width, colour=colour)) is colour


def test_a_wide_table_has_times_in_one_unit_and_names_the_device(tmp_path: Path) -> None:
    make_rounds = rounds(cell("torch-1.0"), [0.010, 0.010, 0.010]) + rounds(cell(), [0.005, 0.005, 0.005])
    run = make(tmp_path, make_rounds)
    text = render(compare([dataset.load_dataset(run)], "torch-1.0", ["torch-2.x"]), "table", width=100)
    first, _, row, *rest = text.splitlines()
    assert first == "torch-1.0 → torch-2.x: 2.00x faster (1.98x to 2.02x); 1 test: 1 faster"
    times = ["10.0 ms", "5.00 ms"]
    assert re.split(r"\s{2,}", row.strip()) == [
        *("asr-lstm/1x320-ce-short train, nn-lstm", *times, "2.00x faster", "1.98x to 2.02x")
    ]
    assert f"run {run.id}, AMD EPYC 7B13, 3 rounds" in rest


@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_ten_tests_take_at_most_sixteen_lines_a_line_each(results: Dataset, width: int) -> None:
    of_pair = compare([results], "torch-1.0", ["torch-2.x"])
    ten = replace(of_pair, rows=of_pair.rows[:10], metrics=of_pair.metrics[:1])
    lines = render(ten, "table", width=width).splitlines()
    assert len(lines) <= 16
    assert lines[0].startswith("torch-1.0 → torch-2.x: ")
    of_tests = [line for line in lines if line.startswith("  ")]
    ratios = [row.ratio or 0.0 for row in sorted(ten.rows, key=lambda row: -(row.ratio or 0.0))]
    assert [wording.speedup(ratio) in line for ratio, line in zip(ratios, of_tests, strict=True)] == [True] * 10


def test_accuracy_is_the_largest_error_with_its_case(tmp_path: Path) -> None:
    other = cell(case="4x320-ce-long")
    records = [
        good(cell(), 0, [1.0], loss_error=1e-7, gradient_error=3e-6, forward_error=1.9e-7),
        good(cell(), 1, [1.0], loss_error=2e-7, gradient_error=1e-6),
        bad(other, 0, "wrong-result", "off", loss_error=0.5, gradient_error=None, forward_error=None),
        good(cell("tf-1.15", "lstm-cell"), 0, [1.0], loss_error=None, gradient_error=None, forward_error=None),
    ]
    (row,) = accuracy(dataset.load_dataset(make(tmp_path, records)))
    assert (row.loss, row.failed) == ((0.5, "asr-lstm/4x320-ce-long", True, 1e-5), True)
    assert row.gradient == (3e-6, "asr-lstm/1x320-ce-short", False, 1e-3)
    assert row.result == (1.9e-7, "asr-lstm/1x320-ce-short", False, 1e-3)
    ok = replace(row, environment="torch-1.0", loss=Worst(1e-7, "asr-lstm/1x320-ce-short"))
    lines = accuracy_text((ok, row)).splitlines()
    assert lines[1].split(maxsplit=7)[:1] == ["FAILED"]
    errors = ["5.0e-01/1e-05", "3.0e-06/1e-03", "1.9e-07/1e-03", "asr-lstm/4x320-ce-long, asr-lstm/1x320-ce-short"]
    assert lines[1].split(maxsplit=7)[4:] == errors
    assert lines[2].split()[:2] == ["ok", "torch-1.0"]
    assert lines[3] == "1 of 2 implementations failed the check; errors are as error/allowed"


@pytest.mark.parametrize("width", [60, 80, 120, 160])
@pytest.mark.parametrize("colour", [False, True])
def test_accuracy_fits_its_terminal_and_keeps_every_result(tmp_path: Path, width: int, *, colour: bool) -> None:
    slug, case_id = "lstm-block-fused-cell", "asr-lstm/1x320-ce-short"
    records = [
        good(cell("keras-2.1-tf", slug), 0, [1.0]),
        bad(cell("tf-2.x", slug), 0, "wrong-result", "off", loss_error=0.5, gradient_error=3e-6, forward_error=1e-7),
    ]
    text = accuracy_text(accuracy(dataset.load_dataset(make(tmp_path, records))), width, colour=colour)
    assert ("\x1b[31m" in text) is colour
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    assert max(map(len, lines)) <= width
    results = [line.split() for line in lines if line.startswith(("ok", "FAILED"))]
    assert [(words[0], words[1], words[2]) for words in results] == [
        ("FAILED", "tf-2.x", slug),
        ("ok", "keras-2.1-tf", slug),
    ]
    plain = " ".join(" ".join(lines).split())
    assert "5.0e-01/1e-05" in plain
    assert plain.count(case_id) == 2


def test_the_last_column_stands_below_the_others_where_there_is_no_room() -> None:
    rows = [("20261120-104500-ab12", "2026-11-20 10:45 UTC", "fair", "PyTorch 2.13.0 is 2.11x faster than 1.0.0")]
    assert rich_text.columns(rows, 120).splitlines() == ["  ".join(rows[0])]
    assert rich_text.columns(rows, 60).splitlines() == ["  ".join(rows[0][:3]), f"    {rows[0][3]}"]


def test_a_missing_time_is_a_dash() -> None:
    assert formatting.step_time(0.0123) == "12.3 ms"
    assert formatting.step_time(None) == formatting.DASH


def test_equal_reasons_are_given_once_with_all_their_rows() -> None:
    rows = [
        Row(
            base=Cell(environment="a", implementation=slug, workload="w", case="c", phase="train"),
            other=Cell(environment="b", implementation=slug, workload="w", case="c", phase="train"),
            verdict="not-measured",
            code="oom",
            reason="too much",
        )
        for slug in ("one", "two")
    ]
    assert comparison_notes.reasons(rows) == [("not-measured", "too much", ["one train", "two train"])]


PAPER = "published:braun2018/torch-0.4"


@pytest.fixture(scope="module")
def with_published(results: Dataset) -> Comparison:
    return compare([results], PAPER, ["torch-2.x", "published:braun2018/torch-0.2"])


@pytest.mark.parametrize("form", ["table", "md", "html"])
def test_a_published_figure_has_its_spread_device_and_citation(with_published: Comparison, form: str) -> None:
    text = with_reasons(with_published, 120) if form == "table" else render(with_published, form)
    text = re.sub(r"\s+", " ", text)
    for word in (
        "11.0 ± 0.15",
        "677 ± 18",
        "NVIDIA GTX 1080 Founders Edition: published:braun2018/torch-0.4, published:braun2018/torch-0.2; AMD EPYC 7B13",
        "Braun, LSTM Benchmarks for Deep Learning Frameworks, table 4, 2018, https://arxiv.org/abs/1806.01818",
        "the ratio is the quotient of the two times, and has no interval",
    ):
        assert word in text
    assert "nan" not in text.replace("nano", "")


def test_json_keeps_its_rows_and_adds_the_published_figures(with_published: Comparison) -> None:
    document = json.loads(render(with_published, "json"))
    assert all(list(row) == ROW_KEYS for row in document["rows"])
    row = next(row for row in document["rows"] if row["environment"] == "torch-2.x")
    assert (row["ratio_low"], row["ratio_high"], row["rounds"], row["verdict"]) == (None, None, 0, "not-comparable")
    assert row["ratio"] == pytest.approx(row["seconds"] / row["base_seconds"])
    figure = next(each for each in document["published"] if each["implementation"] == "nn-lstm")
    assert (figure["side"], figure["value"], figure["unit"], figure["spread"]) == (PAPER, "11", "ms/batch", 0.00015)
    assert "arxiv.org/abs/1806.01818" in figure["citation"]
    assert len(document["runs"]) == 1
    assert json.loads(render(compare([], PAPER, ["published:braun2018/tf-1.8"]), "json"))["runs"] == []


def test_csv_has_the_published_rows(with_published: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(render(with_published, "csv"))))
    assert list(rows[0]) == ["base", *ROW_KEYS]
    assert {row["ratio_low"] for row in rows} == {""}


@pytest.mark.parametrize("width", [44, 60, 80, 120])
def test_a_table_with_published_names_fits_its_terminal(with_published: Comparison, width: int) -> None:
    text = render(with_published, "table", width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "0 rounds" not in text


def test_a_report_has_published_figures_only_on_request(results: Dataset) -> None:
    files = report(analyse(results))
    assert "compared with this run" not in str(files["index.html"]) + str(files["report.md"])


def test_a_report_has_published_and_measured_columns(results: Dataset) -> None:
    files = report(analyse(results), published="braun2018")
    markdown = str(files["report.md"])
    section = markdown[markdown.index("## Braun, ") : markdown.index("<details>")]
    assert "torch: published on NVIDIA GTX 1080 Founders Edition; measured on AMD EPYC 7B13" in section
    heads = [f"torch-0.{minor}, published" for minor in (1, 2, 3, 4)]
    heads += [f"torch-{name}, measured" for name in ("1.0", "1.12", "2.x")]
    assert f"| implementation | phase | {' | '.join(heads)} |" in section
    row = next(line for line in section.splitlines() if line.startswith("| nn-lstm"))
    published, measured = row.split(" | ")[2:6], row.strip("| ").split(" | ")[6:]
    assert published == ["18 ± 0.80 ms", "18 ± 0.83 ms", "13 ± 0.32 ms", "11 ± 0.15 ms"]
    assert all(re.fullmatch(rf"[\d.]+ ms \([\d.]+ {formatting.DASH} [\d.]+\)", entry) for entry in measured)
    alone = next(line for line in section.splitlines() if line.startswith("| compiled-cell"))
    assert alone.split(" | ")[2:6] == [formatting.DASH] * 4
    assert "| lasagne-lstm-layer | train | 36 ± 0.18 ms |" in section
    assert "asr-lstm/1x320-ce-long" in section.partition("not measured in this run: ")[2].splitlines()[0]
    text = html_text(str(files["index.html"]))
    for word in ("published, NVIDIA GTX 1080 Founders Edition", "measured, AMD EPYC 7B13", "11 ± 0.15 ms"):
        assert word in text


def test_published_throughput_is_shown_as_the_time_of_a_step(results: Dataset) -> None:
    section = str(report(analyse(results), published="glample2016")["report.md"]).partition("## Lample")[2]
    line = next(line for line in section.splitlines() if line.startswith("| theano-scan | train"))
    assert line == "| theano-scan | train | 9.27 ms |"  # 289.6 us an example, 32 examples
    phases = [line.split(" | ")[1] for line in section.splitlines() if line.startswith("| basic-lstm-cell")]
    assert phases[:3] == ["compile", "forward", "train"]


def test_other_protocols_and_precisions_have_their_own_columns(tmp_path: Path) -> None:
    phases = {"train": "fp32", "train+published": "fp32"}
    records = [good(cell(phase=phase, precision=precision), 0, [0.05]) for phase, precision in phases.items()]
    records.append(good(cell(precision="tf32"), 0, [0.04]))
    text = str(report(analyse_run(make(tmp_path, records)), published="braun2018")["report.md"])
    assert "| torch-2.x, measured | torch-2.x tf32, measured | torch-2.x+published, measured |" in text


def test_a_run_without_published_cases_is_an_error(tmp_path: Path) -> None:
    results = dataset.load_dataset(make(tmp_path, [good(cell(), 0, [1.0])]))
    with pytest.raises(
        UsageError, match=r"has measured none of the cases of glample2016\nhint: `runner run --workload rnn"
    ):
        report(analyse(results), published="glample2016")
    with pytest.raises(UsageError, match="did you mean 'braun2018'"):
        report(analyse(results), published="braun")


def test_a_time_is_shown_in_the_unit_of_its_workload() -> None:
    assert formatting.in_workload_unit("rnn-step/lstm-b32-h128", "train", 0.0096) == "300 µs/example"
    assert formatting.in_workload_unit("lm-lstm/ptb-large", "train+published", 0.7) == "1000 words/s"
    assert formatting.in_workload_unit("rnn-step/lstm-b32-h128", "compile", 0.0096) == formatting.DASH
    assert formatting.in_workload_unit("my-network/small", "train", 1.0) == "1000 ms/step"
