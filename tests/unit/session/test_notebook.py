"""The interface for Python: runs and comparisons as frames, and charts for a notebook."""

import contextlib
import io
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import runner
from runner.analysis.analyse import analyse_run
from runner.core.errors import UsageError
from runner.report import data
from runner.session.results import comparison, find_run, run_answer
from runner.stats.intervals import MARGIN
from tests.support.fake_runs import cell, good, make, realistic, times

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "analyse-in-python.md"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "reports"
    realistic(folder)
    return folder


@pytest.mark.usefixtures("reports")
def test_the_documented_examples_run_from_top_to_bottom(tmp_path: Path) -> None:
    blocks = [part.partition("\n```")[0] for part in PAGE.read_text("utf-8").split("```python\n")[1:]]
    assert len(blocks) == 4
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec("\n".join(blocks), {})
    assert "faster" in printed.getvalue()
    assert (tmp_path / "torch.svg").exists()
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_a_comparison_has_the_rows_of_the_command(reports: Path) -> None:
    result = runner.compare("torch-1.0", "torch-2.x")
    expected = comparison(Path("matrix.yaml"), reports, ["torch-1.0", "torch-2.x"], best=False)
    assert result.comparison == expected
    assert [name for name in result.table.columns if name not in ("base", "change")] == list(data.COLUMNS)
    assert result.table["ratio"].tolist() == pytest.approx([row.ratio for row in expected.rows], nan_ok=True)
    for row, change in zip(expected.rows, result.table["change"].tolist(), strict=True):
        assert not row.ratio or row.verdict == "same" or change.endswith("faster" if row.ratio < 1 else "slower")
    assert str(result).startswith("PyTorch 1.0 → 2.x: ")


def test_metrics_are_a_frame_and_what_changed_is_in_the_repr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    peaks = {"torch-1.0": 100 << 20, "torch-2.x": 130 << 20}
    make(
        tmp_path / "reports",
        [
            good(cell(name), number, times(0.1), step_peak_bytes=peak + 1000 * number)
            for name, peak in peaks.items()
            for number in range(5)
        ],
    )
    result = runner.compare("torch-1.0", "torch-2.x")
    (row,) = result.metrics.to_dict("records")
    assert (row["metric"], row["verdict"], row["change"]) == ("memory", "more", "1.30x more memory")
    assert row["amount"] == (130 << 20) + 2000
    assert list(result.metrics.columns) == list(result.table.columns)
    first, changed = repr(result).splitlines()
    assert first == "<comparison of torch-1.0 → torch-2.x: 1 test>"
    assert changed.startswith("1.30x more memory (")
    assert "100 MiB → 130 MiB" in changed
    assert runner.load_run().metrics["change"].tolist() == ["1.30x more memory"]


def test_a_run_is_read_by_folder_by_id_and_as_the_newest(reports: Path) -> None:
    stored = find_run(reports, None)
    loaded = [runner.load_run(), runner.load_run(reports), runner.load_run(stored.path), runner.load_run(stored.id)]
    for result in loaded:
        assert result.id == stored.id
        assert result.answer == run_answer(analyse_run(stored, MARGIN))
        assert len(result.samples) > len(result.rounds) > 0
        assert set(result.failures.columns) >= {"cell", "failure", "reason"}
        assert result.grade is not None
        assert result.grade.level in str(result)


@pytest.mark.usefixtures("reports")
def test_two_charts_in_a_notebook_share_no_id_and_no_style_rule() -> None:
    run = runner.load_run()
    one_pair = runner.compare("torch-1.0", "torch-2.x")
    ids = []
    for result in (run, one_pair):
        root = ET.fromstring(result._repr_svg_())  # what a notebook calls
        name = root.attrib["id"]
        assert all(each.attrib["id"].startswith(name) for each in root.iter() if "id" in each.attrib)
        style = next(root.iter(f"{SVG}style")).text or ""
        assert all(line.startswith(f"#{name} ") for line in style.splitlines())
        uses = {use.attrib["href"] for use in root.iter(f"{SVG}use")}
        assert uses == {f"#{name}-axis"}
        ids.append(name)
    assert len(set(ids)) == 2


@pytest.mark.usefixtures("reports")
def test_what_cannot_be_had_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no run"):
        runner.load_run("20200101-000000-none")
    with pytest.raises(UsageError, match="holds no run"):
        runner.load_run(tmp_path)
    with pytest.raises(UsageError, match=r"\.svg or \.png"):
        runner.load_run().chart.save("chart.pdf")
