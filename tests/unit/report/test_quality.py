"""What is doubtful stands beside its row and in a section, in the same words everywhere, and a page stays readable."""

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
from runner.analysis.compare.summary import summarise
from runner.analysis.model import Comparison, Dataset, QualityIssue, Row
from runner.analysis.quality import quality_issues
from runner.core.model import Record
from runner.report import FORMATS, quality, render, report, terminal
from runner.workflows.check import check
from runner.workflows.results import comparison
from tests.support.fake_runs import cell, good, make

CALM: dict[str, Any] = {"governor": "performance", "load_average": [0.1, 0.1, 0.1], "logical_cores": 8}
THROTTLED = "the device was throttled in 3 of 3 rounds"
SPREAD = "its rounds differ by 26%, as a standard deviation"


def calm(environment: str, slug: str = "nn-lstm", scale: float = 1.0, **facts: Any) -> list[Record]:
    """Return three rounds without a doubt, but for what the facts say."""
    of = cell(environment, slug)
    seeds = np.random.default_rng(sum(map(ord, environment + slug)))
    return [good(of, number, (1e-3 * scale * seeds.lognormal(0.0, 0.002, 30)).tolist(), **facts) for number in range(3)]


def wide(environment: str, slug: str = "nn-lstm") -> list[Record]:
    """Return three rounds that lie far apart."""
    records = []
    for number, factor in enumerate((1.0, 1.3, 1.69)):
        records.append(calm(environment, slug, factor)[number])
    return records


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a serious doubt about one side of a pair, a lesser one about the other side, and a calm pair."""
    folder = tmp_path_factory.mktemp("reports")
    records = [*wide("torch-1.0"), *calm("torch-2.x", throttled=2)]
    records += [*calm("torch-1.0", "lstm-cell-basic"), *calm("torch-2.x", "lstm-cell-basic", 0.5)]
    records += [*calm("torch-1.12", "lstm-cell-basic", 0.7), *calm("torch-1.0", "lstm-cell-fused", throttled=1)]
    make(folder, [*records, *calm("torch-2.x", "lstm-cell-fused", 0.5)], **{**CALM, "governor": "powersave"})
    return folder


@pytest.fixture(scope="module")
def results(reports: Path) -> Dataset:
    (folder,) = (reports / "runs").iterdir()
    return dataset.load_dataset(folder)


@pytest.fixture(scope="module")
def page(results: Dataset) -> str:
    return str(report(results, summarise(results))["index.html"])


@pytest.fixture(scope="module")
def markdown(results: Dataset) -> str:
    return str(report(results, summarise(results))["report.md"])


@pytest.fixture(scope="module")
def compared(reports: Path) -> Comparison:
    return comparison(Path("nowhere.yaml"), reports, ["torch-1.0", "torch-2.x"], best=False)


class Rows(HTMLParser):
    """The rows of a page's tables: what each cell says, and of each mark its label, its title and its class."""

    def __init__(self, page: str) -> None:
        """Read a page."""
        super().__init__()
        self.rows: list[list[str]] = []
        self.marks: list[list[tuple[str, str, str]]] = []
        self.mark: tuple[str, str] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a row, a cell or a mark."""
        known = dict(attrs)
        if tag == "tr":
            self.rows.append([])
            self.marks.append([])
        elif tag in {"td", "th"}:
            self.rows[-1].append("")
        elif tag == "span" and (known.get("class") or "").startswith("mark"):
            self.mark = (known.get("title") or "", known.get("class") or "")

    def handle_data(self, data: str) -> None:
        """Keep what a cell or a mark says."""
        if self.mark and self.marks:
            self.marks[-1].append((data, *self.mark))
            self.mark = None
        elif self.rows and self.rows[-1]:
            self.rows[-1][-1] += data

    def of(self, *words: str) -> list[tuple[str, str, str]]:
        """Return the marks of the last row that begins with these words."""
        found = [marks for row, marks in zip(self.rows, self.marks, strict=True) if row[: len(words)] == [*words]]
        return found[-1]


def test_a_row_of_the_page_has_a_mark_with_its_sentence_as_the_title(page: str) -> None:
    rows = Rows(page)
    assert rows.of("nn-lstm", "torch-2.x") == [("throttled", THROTTLED, "mark serious")]
    assert rows.of("nn-lstm", "torch-1.0") == [("spread", SPREAD, "mark")]
    assert rows.of("lstm-cell-basic", "torch-2.x") == rows.of("lstm-cell-basic", "torch-1.0") == []


def test_what_is_serious_about_the_base_is_repeated_beside_what_is_compared_with_it(page: str) -> None:
    assert Rows(page).of("lstm-cell-fused", "torch-2.x") == [("base: throttled", THROTTLED, "mark serious")]
    assert "base: spread" not in page


def test_a_change_in_the_summary_is_marked_where_it_is_in_question(page: str) -> None:
    rows = Rows(page)
    changed = dict(zip(map(tuple, rows.rows), rows.marks, strict=True))
    found = {key[2]: marks for key, marks in changed.items() if key[:2] == ("asr-lstm/1x320-ce-short", "train")}
    assert found["lstm-cell-fused"] == [("base: throttled", THROTTLED, "mark serious")]
    assert found["lstm-cell-basic"] == []


def test_the_page_has_a_section_of_the_serious_and_a_line_for_each_lesser_code(page: str) -> None:
    rows = Rows(page)
    assert '<p class="soft">Serious quality issues, which put 1 verdict into question.</p>' in page
    said = [f"{cell('torch-1.0', 'lstm-cell-fused').id}: the device was", f"{cell('torch-2.x').id}: the device was"]
    serious = next(row for row in rows.rows if row[0] == "throttled")
    assert serious[1] == "1 cell of torch-1.0, 1 of torch-2.x"
    assert sorted(re.findall(r"torch-\S+?: the device was", serious[2])) == said
    lesser = {row[0]: row[1].splitlines()[0] for row in rows.rows if len(row) == 2}
    assert lesser["spread"] == f"{cell('torch-1.0').id}: {SPREAD}"
    assert lesser["governor"] == "the governor was powersave: the clock of the processor followed the load"
    assert "<dt>Quality issues</dt><dd>2 serious, 2 minor</dd>" in page


def test_markdown_says_the_same_with_footnotes(markdown: str) -> None:
    rows = {tuple(line.strip("| ").split(" | ")[:2]): line for line in markdown.splitlines() if line.startswith("|")}
    numbers = {said: number for number, said in re.findall(r"^\[\^(\d+)\]: (.*)$", markdown, re.MULTILINE)}
    assert set(numbers) == {f"throttled: {THROTTLED}", f"spread: {SPREAD}"}
    throttled, spread = numbers[f"throttled: {THROTTLED}"], numbers[f"spread: {SPREAD}"]
    assert rows["nn-lstm", "torch-2.x"].endswith(f"| **throttled**[^{throttled}] |")
    assert rows["nn-lstm", "torch-1.0"].endswith(f"| spread[^{spread}] |")
    assert rows["lstm-cell-fused", "torch-2.x"].endswith(f"| **base: throttled**[^{throttled}] |")
    assert rows["lstm-cell-basic", "torch-2.x"].endswith("|  |")
    section = markdown.partition("## Quality issues\n\nSerious quality issues, which put 1 verdict into question.\n\n")[
        2
    ].partition("\n## ")[0]
    assert section.startswith("- **throttled**: 1 cell of torch-1.0, 1 of torch-2.x\n  - torch-")
    assert f"\n- spread: {cell('torch-1.0').id}: {SPREAD}\n" in section


def test_the_report_says_what_check_says(reports: Path, results: Dataset, page: str, markdown: str) -> None:
    found = check(reports, results.run, Path("nowhere.yaml"))
    said = found.text(400)
    assert "put 1 verdict into question\n  throttled  1 cell of torch-1.0, 1 of torch-2.x: the device" in said
    for one in found.json()["doubts"]:
        for text in (said, re.sub(r"<[^>]+>", " ", page), markdown):
            assert one["sentence"] in text
            assert re.search(rf"\b{one['code']}\b", text)


def test_a_run_without_doubts_says_so(tmp_path: Path) -> None:
    found = dataset.load_dataset(make(tmp_path, [*calm("torch-1.0"), *calm("torch-2.x")], **CALM))
    files = report(found, summarise(found))
    assert "No quality issues." in str(files["index.html"])
    assert "<dd>none</dd>" in str(files["index.html"])
    assert "## Quality issues\n\nNo quality issues.\n" in str(files["report.md"])
    assert "| quality issues |" not in str(files["report.md"])
    assert "[^1]" not in str(files["report.md"])


@pytest.mark.parametrize("form", FORMATS)
def test_a_comparison_marks_its_rows_in_every_form(compared: Comparison, form: str) -> None:
    text = render(compared, form)
    assert "throttled" in text
    assert (THROTTLED in text) == (form != "csv")
    assert ("spread" in text) == (form != "table")  # a lesser doubt takes no room on a terminal


def test_a_terminal_has_a_question_mark_and_what_was_seen(compared: Comparison) -> None:
    lines = render(compared, "table").splitlines()
    verdicts = {line.split()[0]: line.split()[-1] for line in lines if line.split()[1:2] == ["train"]}
    assert verdicts == {"lstm-cell-basic": "faster", "lstm-cell-fused": "faster?", "nn-lstm": "inconclusive?"}
    assert f"  ? throttled: torch-2.x nn-lstm train: {THROTTLED}" in lines
    assert f"  ? throttled: torch-1.0 lstm-cell-fused train: {THROTTLED}" in lines
    assert terminal.QUESTIONED in lines


@pytest.mark.parametrize("width", [44, 60, 80, 120])
def test_a_table_with_marks_fits_its_terminal_and_cuts_no_verdict(compared: Comparison, width: int) -> None:
    lines = render(compared, "table", width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert sum("faster?" in line or "inconclusive?" in line for line in lines) == 2


def test_json_has_codes_in_the_rows_and_the_doubts_once(compared: Comparison) -> None:
    document = json.loads(render(compared, "json"))
    assert {row["implementation"]: row["doubts"] for row in document["rows"]} == {
        "lstm-cell-basic": [],
        "lstm-cell-fused": ["throttled"],
        "nn-lstm": ["throttled", "spread"],
    }
    assert [(one["code"], one["serious"], one["environment"]) for one in document["doubts"]] == [
        ("throttled", True, "torch-1.0"),
        ("throttled", True, "torch-2.x"),
        ("spread", False, "torch-1.0"),
    ]
    assert document["doubts"][1]["cell"] == cell("torch-2.x").id


def test_csv_has_codes_in_its_last_column(compared: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(render(compared, "csv"))))
    assert [row["doubts"] for row in rows] == ["", "throttled", "throttled spread"]


def many(count: int, code: str = "two-modes", *, environments: int = 1) -> list[QualityIssue]:
    found = []
    for number in range(count):
        of = cell(f"torch-{number % environments}.0", f"slug-{number}")
        sentence = f"seen {number} times"
        found.append(
            QualityIssue(
                code=code,
                sentence=sentence,
                serious=True,
                environment=of.environment,
                cell=of.id,
                extent=float(count - number),
            )
        )
    return found


def test_hundreds_of_doubts_are_the_three_worst_of_each_code_and_a_count() -> None:
    found = quality.section([*many(400, environments=5), *many(4, "trend"), *many(1, "swapping")], ())
    modes, trend, swapping = found.serious
    assert (modes.code, modes.more, found.total) == ("two-modes", 397, "405 serious")
    assert modes.cells == "80 cells of torch-0.0, 80 of torch-1.0 and 240 of 3 more environments"
    assert [said.partition(": ")[2] for said in modes.worst] == ["seen 0 times", "seen 1 times", "seen 2 times"]
    assert (len(trend.worst), trend.more) == (4, 0)  # to say "and 1 more" takes as much room
    assert (swapping.cells, len(swapping.worst)) == ("1 cell of torch-0.0", 1)
    assert found.title == "serious quality issues"


def row(found: Sequence[QualityIssue]) -> Row:
    return Row(base=cell("torch-1.0"), other=cell(), verdict="faster", ratio=0.5, quality_issues=tuple(found))


def test_below_a_case_stand_the_worst_of_each_code_and_how_many_more() -> None:
    doubted = many(5)
    assert quality.serious_of_rows([row(doubted[1:]), row(doubted[:2])]) == [
        ("two-modes", "torch-0.0 slug-0 train: seen 0 times"),
        ("two-modes", "torch-0.0 slug-1 train: seen 1 times"),
        ("two-modes", "torch-0.0 slug-2 train: seen 2 times"),
        ("two-modes", "and 2 more"),
    ]


def test_a_cell_of_two_comparisons_has_the_doubts_about_the_base_of_the_first() -> None:
    of_bases = [replace(one, environment=f"tf-{place}") for place, one in enumerate(many(2))]
    both = [
        Comparison(base=one.environment, others=("torch-2.x",), device="", device_name="", rows=(row([one]),))
        for one in of_bases
    ]
    assert quality.marks_by_cell([], both) == {
        cell().id: (quality.Mark("base: two-modes", "seen 0 times", serious=True),)
    }


def test_lesser_doubts_are_no_question_and_have_no_line_below_a_case(results: Dataset) -> None:
    lesser = [one for one in quality_issues(results) if not one.serious]
    assert quality.serious_of_rows([row(lesser)]) == []
    assert quality.count_questioned(lesser, summarise(results)) == 0
    assert quality.section(lesser, ()).title == "no serious quality issues"


def test_what_a_doubt_says_cannot_become_markup(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    found = dataset.load_dataset(make(tmp_path, [*calm("torch-1.0"), *calm("torch-2.x")], **{**CALM, "governor": evil}))
    files = report(found, summarise(found))
    assert "<script" not in str(files["index.html"])
    assert "<script" not in str(files["report.md"]).replace(r"\<", "")
