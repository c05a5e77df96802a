"""The chart of a comparison as a file: all rows, on the axis of the page, as SVG and PNG."""

import struct
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from runner import cli
from runner.analysis import dataset
from runner.analysis.compare import compare
from runner.analysis.comparison_model import Comparison
from runner.analysis.releases import releases
from runner.core.errors import UsageError
from runner.report import chart_file
from runner.report.compared_rows import compared_rows
from tests.support.fake_runs import realistic

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    realistic(folder)
    return folder


@pytest.fixture(scope="module")
def comparison(reports: Path) -> Comparison:
    results = dataset.load_dataset(next((reports / "runs").iterdir()))
    compared = compare([results], "torch-1.0", ["torch-2.x", "torch-1.12"])
    return replace(compared, releases=releases(results))


def test_what_rows_use_of_the_axis_has_colours_of_its_own(comparison: Comparison) -> None:
    """A style rule below the id of the chart matches nothing in a symbol that is used: the band was black."""
    (symbol,) = ET.fromstring(chart_file.svg([comparison], comparison.releases)).iter(f"{SVG}symbol")
    assert len(symbol) > 3
    assert all({"fill", "stroke"} & part.attrib.keys() and "class" not in part.attrib for part in symbol)


def test_the_svg_has_the_texts_of_every_row_and_a_picture_of_each_interval(comparison: Comparison) -> None:
    root = ET.fromstring(chart_file.svg([comparison], comparison.releases))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    rows = compared_rows([comparison], comparison.releases)
    assert rows
    for row in rows:
        assert row.label in texts
        assert f"{row.change} ({row.bare_ends})" in texts
    forests = [each for each in root.iter(f"{SVG}svg") if each.find(f"{SVG}circle") is not None]
    assert len(forests) == sum(row.row.ratio is not None for row in rows)
    assert len(list(root.iter(f"{SVG}symbol"))) == 1
    (run,) = {run for row in rows for run in row.row.runs}
    assert f"AMD EPYC 7B13; run {run}, 2026-11-20 10:45 UTC" in texts
    assert f"within {100 * comparison.margin:g} % is the same" in " ".join(filter(None, texts))


def test_pictures_of_rows_lie_below_each_other_and_within_the_chart(comparison: Comparison) -> None:
    root = ET.fromstring(chart_file.svg([comparison], comparison.releases))
    forests = [each for each in root.iter(f"{SVG}svg") if each.find(f"{SVG}circle") is not None]
    tops = [float(each.attrib["y"]) for each in forests]
    assert all(later - earlier >= chart_file.LINE for earlier, later in pairwise(tops))
    assert tops[-1] + chart_file.LINE < float(root.attrib["height"])


def test_names_are_escaped(comparison: Comparison) -> None:
    evil = '<script> & "2"'
    names = {key: replace(release, name=evil, short=evil) for key, release in comparison.releases.items()}
    root = ET.fromstring(chart_file.svg([comparison], names))
    assert f"{evil} against {evil}" in [element.text for element in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("suffix", chart_file.SUFFIXES)
def test_the_command_writes_the_chart_that_the_ending_names(reports: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"chart{suffix}"
    arguments = ["compare", "torch-1.0", "torch-2.x", "--matrix", str(tmp_path / "none.yaml")]
    shown = CliRunner().invoke(cli.app, [*arguments, "--reports", str(reports), "-o", str(path)], standalone_mode=False)
    assert (shown.exit_code, shown.stdout) == (0, "")
    written = path.read_bytes()
    assert len(written) > 1000
    if suffix == ".svg":
        assert ET.fromstring(written).tag == f"{SVG}svg"
        return
    assert written.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", written[16:24])
    assert width > 2 * chart_file.WIDTH
    assert height > 2 * chart_file.LINE


def test_controls_alone_are_not_drawn(comparison: Comparison) -> None:
    controls = replace(comparison, others=("torch-1.0@twin",))
    with pytest.raises(UsageError, match="no comparison of releases"):
        chart_file.content([controls], ".svg", {})
