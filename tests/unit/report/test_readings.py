"""The readings of a device while a cell computed, as a line in the details of its row."""

from pathlib import Path
from typing import Any

from runner.analysis import dataset
from runner.analysis.analyse import analyse
from runner.report import report
from runner.report.readings import compiled, telemetry
from tests.support.fake_runs import cell, good, make
from tests.support.html import html_text

OLD, NEW = cell("torch-1.0"), cell("torch-2.x")


def test_readings_are_summed_up_over_the_rounds(tmp_path: Path) -> None:
    readings: list[dict[str, Any]] = [
        {"clock_mhz": [1395, 1410, 1410], "power_watts": 250.0, "temperature_celsius": 61, "joules_per_step": 1.204},
        {"clock_mhz": [1200, 1380, 1410], "power_watts": 260.0, "temperature_celsius": 64, "joules_per_step": 1.21},
        {"clock_mhz": [1410, 1410, 1410], "throttled": 3, "held_back": ["heat", "the power limit"]},
    ]
    records = [good(NEW, number, [0.01], **facts) for number, facts in enumerate(readings)]
    records.append(good(OLD, 0, [0.02]))
    results = dataset.load_dataset(make(tmp_path, records))
    assert telemetry(results.rounds) == {
        NEW.id: "1,410 MHz (1,200 to 1,410), 255 W on average, 1.21 J a step, at most 64 °C, "
        "throttled in 1 of 3 rounds by heat, the power limit"
    }


def test_the_details_of_a_row_have_the_readings_of_both_sides(tmp_path: Path) -> None:
    records = [
        good(side, number, [seconds, seconds], clock_mhz=[mhz, mhz, mhz], throttled=0)
        for side, seconds, mhz in ((OLD, 0.02, 1410), (NEW, 0.01, 1380))
        for number in range(3)
    ]
    results = dataset.load_dataset(make(tmp_path, records))
    details = html_text(str(report(analyse(results))["index.html"]).partition('<div class="more">')[2])
    assert "1,410 MHz" in details
    assert "1,380 MHz" in details
    assert "throttled in" not in details


def test_what_torch_compile_did_is_in_the_details_of_a_row(tmp_path: Path) -> None:
    counts: dict[str, Any] = {"compiled_graphs": 3, "graph_breaks": 1, "graph_break_reasons": ["Dynamic control flow"]}
    records = [good(OLD, number, [0.02], **counts) for number in range(3)]
    records += [good(NEW, number, [0.01], **{**counts, "recompilations": number}) for number in range(3)]
    results = dataset.load_dataset(make(tmp_path, records))
    assert compiled(results.rounds) == {
        OLD.id: "3 compiled graphs, 1 graph break (Dynamic control flow)",
        NEW.id: "3 compiled graphs, 1 graph break, 2 recompilations (Dynamic control flow)",
    }
    details = html_text(str(report(analyse(results))["index.html"]).partition('<div class="more">')[2])
    assert "2 recompilations (Dynamic control flow)" in details
