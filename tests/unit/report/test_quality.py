"""Quality issues: marks on rows and a section, with the same sentences in every output, and few enough to read."""

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.analysis import dataset
from runner.analysis.analyse import analyse
from runner.analysis.compare.comparison import summarise
from runner.analysis.comparison_model import Comparison, Row
from runner.analysis.model import Dataset, QualityIssue
from runner.analysis.quality import quality_issues
from runner.core.model import Record
from runner.report import FORMATS, quality, render, report, terminal
from runner.session.check import check
from runner.session.results import comparison
from tests.support.fake_runs import cell, good, make

QUIET: dict[str, Any] = {"governor": "performance", "load_average": [0.1, 0.1, 0.1], "logical_cores": 8}
THROTTLED = "the device was throttled in 3 of 3 rounds"
SPREAD = "its rounds differ by 26 %, as a standard deviation"


def quiet(environment: str, slug: str = "nn-lstm", scale: float = 1.0, **facts: Any) -> list[Record]:
    """Return three rounds without a quality issue except for those in the facts."""
    of = cell(environment, slug)
    seeds = np.random.default_rng(sum(map(ord, environment + slug)))
    return [good(of, number, (1e-3 * scale * seeds.lognormal(0.0, 0.002, 30)).tolist(), **facts) for number in range(3)]


def wide(environment: str, slug: str = "nn-lstm") -> list[Record]:
    """Return three rounds that differ much."""
    records = []
    for number, factor in enumerate((1.0, 1.3, 1.69)):
        records.append(quiet(environment, slug, factor)[number])
    return records


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a serious issue on one side of a pair, a minor one on the other side, and a quiet pair."""
    folder = tmp_path_factory.mktemp("reports")
    records = [*wide("torch-1.0"), *quiet("torch-2.x", throttled=2)]
    records += [*quiet("torch-1.0", "lstm-cell-basic"), *quiet("torch-2.x", "lstm-cell-basic", 0.5)]
    records += [*quiet("torch-1.12", "lstm-cell-basic", 0.7), *quiet("torch-1.0", "lstm-cell-fused", throttled=1)]
    make(folder, [*records, *quiet("torch-2.x", "lstm-cell-fused", 0.5)], **{**QUIET, "governor": "powersave"})
    return folder


@pytest.fixture(scope="module")
def results(reports: Path) -> Dataset:
    (folder,) = (reports / "runs").iterdir()
    return dataset.load_dataset(folder)


@pytest.fixture(scope="module")
def page(results: Dataset) -> str:
    return str(report(analyse(results))["index.html"])


@pytest.fixture(scope="module")
def markdown(results: Dataset) -> str:
    return str(report(analyse(results))["report.md"])


@pytest.fixture(scope="module")
def compared(reports: Path) -> Comparison:
    return comparison(Path("nowhere.yaml"), reports, ["torch-1.0", "torch-2.x"], best=False)


class Rows(HTMLParser):
    """The rows of a page's tables: the text of each field, and label, title and class of each mark."""

    def __init__(self, page: str) -> None:
        """Read a page."""
        super().__init__()
        self.rows: list[list[str]] = []
        self.marks: list[list[tuple[str, str, str]]] = []
        self.mark: tuple[str, str] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Start a row, a cell or a mark."""
        known = dict(attrs)
        if tag == "tr":
            self.rows.append([])
            self.marks.append([])
        elif tag in {"td", "th"}:
            self.rows[-1].append("")
        elif tag == "span" and (known.get("class") or "").startswith("mark"):
            self.mark = (known.get("title") or "", known.get("class") or "")

    def handle_data(self, data: str) -> None:
        """Keep the text of a cell or a mark."""
        if self.mark and self.marks:
            self.marks[-1].append((data, *self.mark))
            self.mark = None
        elif self.rows and self.rows[-1]:
            self.rows[-1][-1] += data

    def of(self, *words: str) -> list[tuple[str, str, str]]:
        """Return the marks of the last row that starts with these fields."""
        matches = [marks for row, marks in zip(self.rows, self.marks, strict=True) if row[: len(words)] == [*words]]
        return matches[-1]


def test_marks_on_the_page_have_the_sentence_as_title(page: str) -> None:
    rows = Rows(page)
    assert rows.of("nn-lstm", "PyTorch 2.x") == [("throttled", THROTTLED, "mark serious")]
    assert rows.of("nn-lstm", "PyTorch 1.0") == [("spread", SPREAD, "mark")]
    assert rows.of("lstm-cell-basic", "PyTorch 2.x") == rows.of("lstm-cell-basic", "PyTorch 1.0") == []


def test_serious_issues_of_the_base_are_repeated_on_rows_compared_with_it(page: str) -> None:
    assert Rows(page).of("lstm-cell-fused", "PyTorch 2.x") == [("base: throttled", THROTTLED, "mark serious")]
    assert "base: spread" not in [label for label, _, _ in Rows(page).of("nn-lstm", "PyTorch 2.x")]


def test_comparisons_are_marked_if_they_are_questioned(page: str) -> None:
    row = r'<details class="row" id="r-torch-2.x-(\S+?)-asr-lstm-.*?-train-fp32" (.*?)</details>'
    bodies = dict(re.findall(row, page, re.DOTALL))
    assert (
        f'<span class="mark serious" title="{THROTTLED}">! PyTorch 1.0 was throttled</span>'
        in bodies["lstm-cell-fused"]
    )
    assert f"<dt>serious warning</dt><dd>base: throttled: {THROTTLED}</dd>" in bodies["lstm-cell-fused"]
    assert "mark serious" not in bodies["lstm-cell-basic"]


def test_the_page_lists_serious_issues_and_one_line_for_each_minor_code(page: str) -> None:
    rows = Rows(page)
    assert '<span class="soft">Serious warnings, which put 1 verdict into question.</span>' in page
    starts = [f"{cell('torch-1.0', 'lstm-cell-fused').id}: the device was", f"{cell('torch-2.x').id}: the device was"]
    serious = next(row for row in rows.rows if row[0] == "throttled")
    assert serious[1] == "1 test of torch-1.0, 1 of torch-2.x"
    assert sorted(re.findall(r"torch-\S+?: the device was", serious[2])) == starts
    minor = {row[0]: row[1].splitlines()[0] for row in rows.rows if len(row) == 2}
    assert minor["spread"] == f"{cell('torch-1.0').id}: {SPREAD}"
    assert minor["governor"] == "the governor was powersave: the clock of the processor followed the load"


def test_markdown_marks_questioned_rows_and_lists_the_issues(markdown: str) -> None:
    rows = {line.split(" | ")[1]: line for line in markdown.splitlines() if line.startswith("| asr-lstm")}
    assert rows["lstm-cell-fused"].endswith("**base: throttled** |")
    assert "throttled" not in rows["lstm-cell-basic"]
    section = markdown.partition("Serious warnings, which put 1 verdict into question.")[2].partition("</details>")[0]
    assert "- **throttled**: 1 test of torch-1.0, 1 of torch-2.x\n  - torch-" in section
    assert f"\n- spread: {cell('torch-1.0').id}: {SPREAD}\n" in section


def test_report_and_check_show_the_same_issues(reports: Path, results: Dataset, page: str, markdown: str) -> None:
    result = check(reports, results.run, Path("nowhere.yaml"))
    screen = result.text(400)
    assert "put 1 verdict into question\n  throttled  1 test of torch-1.0, 1 of torch-2.x: the device" in screen
    for issue in result.json()["doubts"]:
        for text in (screen, re.sub(r"<[^>]+>", " ", page), markdown):
            assert issue["sentence"] in text
            assert re.search(rf"\b{issue['code']}\b", text)


def test_a_run_without_issues_is_reported_as_such(tmp_path: Path) -> None:
    results = dataset.load_dataset(make(tmp_path, [*quiet("torch-1.0"), *quiet("torch-2.x")], **QUIET))
    files = report(analyse(results))
    assert "No warnings." in str(files["index.html"])
    assert "Warnings: No warnings." in str(files["report.md"])


@pytest.mark.parametrize("form", FORMATS)
def test_a_comparison_marks_its_rows_in_every_format(compared: Comparison, form: str) -> None:
    text = render(compared, form)
    assert "throttled" in text
    assert (THROTTLED in text) == (form not in ("csv", "table"))
    assert ("spread" in text) == (form != "table")  # a terminal leaves minor issues out


def test_a_terminal_shows_a_question_mark_and_the_sentence(compared: Comparison) -> None:
    lines = terminal.text(compared, width=120, colour=False, why=True).splitlines()
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines if " train, " in line]
    verdicts = {row[0].rpartition(", ")[2]: row[3] for row in rows if len(row) > 3}
    assert verdicts == {
        "lstm-cell-basic": "2.00x faster",
        "lstm-cell-fused": "2.00x faster ?",
        "nn-lstm": "can't tell ?",
    }
    assert f"  ? throttled: torch-2.x nn-lstm train: {THROTTLED}" in lines
    assert f"  ? throttled: torch-1.0 lstm-cell-fused train: {THROTTLED}" in lines
    assert "?: serious warning, throttled" in lines


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_table_with_marks_fits_its_terminal_without_cutting_verdicts(compared: Comparison, width: int) -> None:
    lines = render(compared, "table", width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert sum("faster ?" in line or "can't tell ?" in line for line in lines) == 2


def test_json_has_codes_in_rows_and_each_issue_once(compared: Comparison) -> None:
    document = json.loads(render(compared, "json"))
    assert {row["implementation"]: row["doubts"] for row in document["rows"]} == {
        "lstm-cell-basic": [],
        "lstm-cell-fused": ["throttled"],
        "nn-lstm": ["throttled", "spread"],
    }
    assert [(issue["code"], issue["serious"], issue["environment"]) for issue in document["doubts"]] == [
        ("throttled", True, "torch-1.0"),
        ("throttled", True, "torch-2.x"),
        ("spread", False, "torch-1.0"),
    ]
    assert document["doubts"][1]["cell"] == cell("torch-2.x").id


def test_csv_has_codes_in_its_last_column(compared: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(render(compared, "csv"))))
    assert [row["doubts"] for row in rows] == ["", "throttled", "throttled spread"]


def many(count: int, code: str = "two-modes", *, environments: int = 1) -> list[QualityIssue]:
    issues = []
    for number in range(count):
        of = cell(f"torch-{number % environments}.0", f"slug-{number}")
        sentence = f"seen {number} times"
        issues.append(
            QualityIssue(
                code=code,
                sentence=sentence,
                serious=True,
                environment=of.environment,
                cell=of.id,
                extent=float(count - number),
            )
        )
    return issues


def test_hundreds_of_issues_become_the_three_worst_of_each_code_and_a_count() -> None:
    section = quality.section([*many(400, environments=5), *many(4, "trend"), *many(1, "swapping")], ())
    modes, trend, swapping = section.serious
    assert (modes.code, modes.more, section.total) == ("two-modes", 397, "405 serious")
    assert modes.cells == "80 tests of torch-0.0, 80 of torch-1.0 and 240 of 3 more environments"
    assert [text.partition(": ")[2] for text in modes.worst] == ["seen 0 times", "seen 1 times", "seen 2 times"]
    assert (len(trend.worst), trend.more) == (4, 0)  # to say "and 1 more" takes as much room
    assert (swapping.cells, len(swapping.worst)) == ("1 test of torch-0.0", 1)
    assert section.title == "serious warnings"


def row(issues: Sequence[QualityIssue]) -> Row:
    return Row(base=cell("torch-1.0"), other=cell(), verdict="faster", ratio=0.5, quality_issues=tuple(issues))


def test_a_case_lists_the_worst_of_each_code_and_a_count_of_others() -> None:
    issues = many(5)
    assert quality.serious_of_rows([row(issues[1:]), row(issues[:2])]) == [
        ("two-modes", "torch-0.0 slug-0 train: seen 0 times"),
        ("two-modes", "torch-0.0 slug-1 train: seen 1 times"),
        ("two-modes", "torch-0.0 slug-2 train: seen 2 times"),
        ("two-modes", "and 2 more"),
    ]


def test_a_cell_in_two_comparisons_has_the_issues_of_the_first_base() -> None:
    of_bases = [replace(issue, environment=f"tf-{index}") for index, issue in enumerate(many(2))]
    both = [
        Comparison(base=issue.environment, others=("torch-2.x",), device="", device_name="", rows=(row([issue]),))
        for issue in of_bases
    ]
    assert quality.marks_by_cell([], both) == {
        cell().id: (quality.IssueMark("base: two-modes", "seen 0 times", serious=True),)
    }


def test_minor_issues_question_no_verdict_and_are_not_listed_below_a_case(results: Dataset) -> None:
    minor = [issue for issue in quality_issues(results) if not issue.serious]
    assert quality.serious_of_rows([row(minor)]) == []
    assert quality.count_questioned(minor, summarise(results)) == 0
    assert quality.section(minor, ()).title == "no serious warnings"


def test_sentences_of_issues_are_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    results = dataset.load_dataset(
        make(tmp_path, [*quiet("torch-1.0"), *quiet("torch-2.x")], **{**QUIET, "governor": evil})
    )
    files = report(analyse(results))
    assert "<script>alert" not in str(files["index.html"])
    assert "<script" not in str(files["report.md"]).replace(r"\<", "")
