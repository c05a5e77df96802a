"""The section of the profiles: the operators of two releases side by side, in HTML and in Markdown."""

from pathlib import Path
from typing import Any

import pytest

from runner.analysis.analyse import analyse_run
from runner.core.model import Cell
from runner.core.model.cells import twin
from runner.report import profile_section as shown
from runner.report.formatting import DASH
from runner.session.results import write_report
from runner.store.profile_files import write_profile
from runner.store.run import Run
from tests.support.fake_runs import cell, make, rounds

BASE, OTHER = cell("torch-1.12"), cell("torch-2.x")


def profile(step: float, **operators: float) -> dict[str, Any]:
    """Return a profile of operators with their seconds on the host."""
    rows = [
        {"name": name, "calls": 2.0, "host_seconds": seconds, "device_seconds": 0.0, "total_seconds": seconds}
        for name, seconds in operators.items()
    ]
    taken = {"profiler": "torch.profiler", "steps": 5, "step_seconds": step, "plain_step_seconds": 0.8 * step}
    return {"reason": "", **taken, "rows": rows}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make(tmp_path, [*rounds(BASE, [0.1] * 3), *rounds(OTHER, [0.2] * 3)])


def texts(run: Run, profiles: dict[Cell, dict[str, Any]]) -> tuple[str, str]:
    """Return the page and the Markdown of a run with profiles."""
    for of, content in profiles.items():
        write_profile(run.path, of.id, content)
    page = write_report(analyse_run(run, 0.02), run)
    return page.read_text(), (run.path / "report.md").read_text()


def test_a_slow_down_has_the_name_of_its_operator(run: Run) -> None:
    profiles = {BASE: profile(0.1, mm=0.06, tanh=0.03), OTHER: profile(0.2, mm=0.15, add=0.02, tanh=0.03)}
    html, markdown = texts(run, profiles)
    assert "largest difference: <code>mm +90.00 ms</code>" in html
    assert 'href="#profiles"' in html
    lines = [line for line in markdown.splitlines() if line.startswith("| ")]
    start = next(number for number, line in enumerate(lines) if "time on the CPU" in line)
    assert lines[start : start + 7] == [
        "| operator, time on the CPU | difference | of the step | PyTorch 1.12 | PyTorch 2.x | calls |",
        "| --- | --- | --- | --- | --- | --- |",
        "| mm | +90.00 ms | +90.0 % | 60.00 ms | 150.00 ms | 2 |",
        f"| add | +20.00 ms | +20.0 % | {DASH} | 20.00 ms | {DASH} → 2 |",
        f"| **outside of operators** | -10.00 ms | -10.0 % | 10.00 ms | {DASH} | {DASH} |",
        "| tanh | +0.00 ms | +0.0 % | 30.00 ms | 30.00 ms | 2 |",
        "| **sum** | +100.00 ms | +100.0 % | 100.00 ms | 200.00 ms |  |",
    ]
    assert "torch.profiler, 5 steps; a step took 100 ms with the profiler, 80.0 ms without it" in html


def test_only_the_largest_differences_are_rows_and_the_others_are_a_sum(run: Run) -> None:
    names = {f"op{number:02}": 0.001 * number for number in range(1, 21)}
    html, _ = texts(
        run, {BASE: profile(0.3, **names), OTHER: profile(0.6, **{name: 2 * s for name, s in names.items()})}
    )
    assert "<b>6 others together</b>" in html
    assert "<code>op20</code>" in html
    assert "<code>op06</code>" not in html


def test_a_run_without_profiles_has_no_section(run: Run) -> None:
    html, markdown = texts(run, {})
    assert "profiles" not in html.partition("<body>")[2]
    assert "Where the time goes" not in markdown


def test_missing_and_damaged_profiles_are_sentences(run: Run) -> None:
    write_profile(run.path, OTHER.id, profile(0.2, mm=0.1))
    path = next((run.path / "profiles").iterdir())
    path.write_text(path.read_text().replace("0.1", "0.2"))
    html, markdown = texts(run, {BASE: {"reason": "this release of PyTorch has no profiler"}})
    for text in (html, markdown):
        assert "no profile of 1 test: this release of PyTorch has no profiler." in text
        assert "does not agree with its checksum" in text


def test_a_name_from_outside_is_text(run: Run) -> None:
    evil = "<script>alert(1)</script>|`x`"
    html, markdown = texts(run, {BASE: profile(0.1, **{evil: 0.1}), OTHER: profile(0.1, mm=0.1)})
    assert "<script>alert" not in html
    assert "\\<script\\>" in markdown


def test_a_step_that_is_far_slower_with_the_profiler_is_doubted(run: Run) -> None:
    html, _ = texts(run, {BASE: profile(0.1, mm=0.1), OTHER: profile(0.9, mm=0.1)})
    assert html.count("trust the numbers of calls more than the times") == 1
    assert shown.DISTURBED in html


def test_rows_that_differ_as_much_between_two_processes_of_a_release_are_marked(tmp_path: Path) -> None:
    run = make(tmp_path, [each for of in (BASE, OTHER, twin(BASE)) for each in rounds(of, [0.1] * 3)])
    profiles = {
        BASE: profile(0.1, mm=0.06, tanh=0.03, add=0.001),
        twin(BASE): profile(0.1, mm=0.065, tanh=0.02, add=0.001),
        OTHER: profile(0.3, mm=0.15, tanh=0.035, add=0.002),
    }
    html, markdown = texts(run, profiles)
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    marked = [line.split(" ")[1] for line in rows if "no more than between two processes" in line]
    assert marked == ["tanh"]
    assert '<tr class="soft"><td><code>tanh</code>' in html
    assert "<tr><td><code>mm</code>" in html
    assert "PyTorch 1.12 has a second profile, of another process" in html
    assert "largest difference: <code>mm +90.00 ms</code>" in html


def test_without_a_twin_the_section_says_that_a_profile_is_of_one_process(run: Run) -> None:
    html, markdown = texts(run, {BASE: profile(0.1, mm=0.06), OTHER: profile(0.2, mm=0.15)})
    for text in (html, markdown):
        assert "nothing shows by how much it differs from one of another process" in text
    assert 'class="soft"><td><code>' not in html
