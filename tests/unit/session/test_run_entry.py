"""A run folder as an entry: medians, ratios to the run's base, and what its night found."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from runner.analysis import dataset
from runner.analysis.analyse import analyse_run
from runner.analysis.compare.comparison import summarise
from runner.core.errors import RecordError
from runner.core.model import Cell, Record
from runner.core.model.cells import twin
from runner.history.entries import RunEntry
from runner.session.run_entry import run_entry
from runner.stats.intervals import MARGIN
from runner.store.run import Run
from tests.support.changed_runs import change_header
from tests.support.fake_runs import bad, cell, good, make, rounds, times
from tests.support.host_runs import DESK, GPU_1, GPU_2, H100, RTX, realistic

OLD, NEW = cell("torch-1.0"), cell("torch-2.x")
OTHER = cell("torch-2.x", "lstm-cell-basic")
HEADER = {
    "at": "2026-11-20T10:44:59Z",
    "backend": "docker",
    "device": "GPU-1,GPU-2",
    "device_name": "2 x H200",
    "driver": "580.1",
    "harness": "9f3c",
    "digests": {"torch-1.0": "sha256:old", "torch-2.x": "sha256:new"},
}


def entry_of(run: Run, margin: float = MARGIN) -> RunEntry:
    return run_entry(analyse_run(run, margin), run)


def a_run(reports: Path, *more: Cell) -> Run:
    """Make a run in which torch-2.x takes 1.1 times as long as torch-1.0, with a twin and other cells."""
    records = [*rounds(OLD, [1.0, 1.01, 0.99, 1.0, 1.0]), *rounds(NEW, [1.1, 1.11, 1.09, 1.1, 1.1])]
    records += [record for of in more for record in rounds(of, [1.0, 1.0, 1.0, 1.0, 1.0])]
    run = make(reports, records, host="bench")
    change_header(run, **HEADER)
    run.note("ended", how="done")
    return run


def test_each_cell_of_a_run_of_several_hosts_has_its_board(tmp_path: Path) -> None:
    run = realistic(tmp_path, {GPU_1: [("rnn-step", "a")], GPU_2: [("rnn-step", "b")], DESK: [("rnn-step", "c")]})
    change_header(run, **{**HEADER, "device": "cpu", "device_name": "the processor of the driver"})
    entry = entry_of(run)
    boards = {Cell.parse(each.cell).case: each.board for each in entry.cells}
    assert {case: (board.host, board.device, board.device_name) for case, board in boards.items() if board} == {
        "a": (GPU_1.host, GPU_1.uuid, H100),
        "b": (GPU_2.host, GPU_2.uuid, H100),
        "c": (DESK.host, DESK.uuid, RTX),
    }
    assert {board.driver for board in boards.values() if board} == {"580.65.06", "570.86.10"}
    assert (entry.device_name, entry.host) == (f"{RTX} and {H100}", "desk-3, gpu-1, gpu-2")
    assert set(entry.device.split(",")) == {GPU_1.uuid, GPU_2.uuid, DESK.uuid}


def test_a_run_of_two_hosts_of_a_kind_is_of_two_devices(tmp_path: Path) -> None:
    run = realistic(tmp_path, {GPU_1: [("rnn-step", "a")], GPU_2: [("rnn-step", "b")]})
    change_header(run, **HEADER)
    assert entry_of(run).device_name == f"2 x {H100}"


def test_cells_of_one_board_have_none_and_the_same_digest_as_ever(tmp_path: Path) -> None:
    entry = entry_of(a_run(tmp_path))
    assert {each.board for each in entry.cells} == {None}
    assert entry.metrics == ()
    content = {name: value for name, value in asdict(entry).items() if name not in ("source", "metrics")}
    newer = ("board", "metric")
    content["cells"] = [{name: value for name, value in each.items() if name not in newer} for each in content["cells"]]
    assert entry.digest == hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def test_a_run_has_medians_and_ratios_as_its_report_does(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    entry = entry_of(run)
    assert (entry.run, entry.at, entry.kind) == (run.id, HEADER["at"], "run")
    assert (entry.device, entry.device_name, entry.backend) == ("GPU-1,GPU-2", "2 x H200", "docker")
    assert (entry.host, entry.driver, entry.harness) == ("bench", "580.1", "9f3c")
    assert entry.source == str(run.path)
    old, new = entry.cells
    assert (old.cell, old.seconds, old.rounds, old.base, old.ratio, old.verdict) == (OLD.id, 1.0, 5, "", None, "")
    assert (old.release, old.digest) == ("1.0", "sha256:old")
    assert old.seconds_low is not None
    assert old.seconds_low < 1.0 < (old.seconds_high or 0)
    (comparison,) = summarise(dataset.load_dataset(run), margin=MARGIN)
    (row,) = comparison.rows
    assert (new.base, new.base_release, new.base_digest) == (OLD.id, "1.0", "sha256:old")
    assert (new.ratio, new.ratio_low, new.ratio_high) == (row.ratio, row.ratio_low, row.ratio_high)
    assert new.verdict == row.verdict == "slower"


def test_metrics_have_medians_and_ratios_as_the_comparison_does(tmp_path: Path) -> None:
    def with_metrics(of: Cell, factor: float) -> list[Record]:
        noise = (1.0, 1.01, 0.99, 1.0, 1.005)
        facts: list[dict[str, Any]] = [
            {"step_peak_bytes": int(1e8 * factor * each), "installed_bytes": int(2e9 * factor)} for each in noise
        ]
        return [good(of, number, times(1.0), **each) for number, each in enumerate(facts)]

    run = make(tmp_path, [*with_metrics(OLD, 1.0), *with_metrics(NEW, 1.3), *with_metrics(twin(OLD), 1.0)])
    change_header(run, **HEADER)
    analysis = analyse_run(run)
    entry = run_entry(analysis, run)
    assert {each.metric for each in entry.cells} == {"time"}
    of_memory = {each.cell: each for each in entry.metrics if each.metric == "memory"}
    assert {cell: each.seconds for cell, each in of_memory.items()} == {OLD.id: 1e8, NEW.id: 1.3e8}
    new, (row,) = of_memory[NEW.id], next(iter(analysis.comparisons)).rows_of("memory")
    assert (new.base, new.ratio, new.ratio_low, new.verdict) == (OLD.id, row.ratio, row.ratio_low, "more")
    assert (new.release, new.digest, new.rounds) == ("2.x", "sha256:new", 5)
    sizes = [each for each in entry.metrics if each.metric == "size"]
    assert [each.cell.partition("/")[0] for each in sizes] == ["torch-1.0", "torch-2.x"]
    assert [each.seconds for each in sizes] == [2e9, 2.6e9]
    assert {each.metric for each in entry.metrics} == {"memory", "size"}


def test_the_margin_decides_the_verdict(tmp_path: Path) -> None:
    assert entry_of(a_run(tmp_path), 0.5).cells[1].verdict == "same"


def test_twins_and_environments_as_they_were_are_left_out(tmp_path: Path) -> None:
    entry = entry_of(a_run(tmp_path, twin(OLD), cell("torch-2.x@20261101-023000-ab12")))
    assert [each.cell for each in entry.cells] == [OLD.id, NEW.id]


def test_failed_cells_and_sides_without_a_partner_have_no_ratio(tmp_path: Path) -> None:
    records = [*rounds(NEW, [1.0, 1.0, 1.0]), bad(OLD, 0, "crash", "it ended"), good(OTHER, 0, times(2.0))]
    entry = entry_of(make(tmp_path, records))
    assert [(each.cell, each.base, each.ratio, each.rounds) for each in entry.cells] == [
        (NEW.id, "", None, 3),
        (OTHER.id, "", None, 1),
    ]
    assert entry.at == "2026-11-20T10:45:00Z"  # of its name: it has no header


def test_the_place_of_a_run_says_what_it_is(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    night = tmp_path / "nights" / f"{run.id}.json"
    confirmation = a_run(night.with_suffix(""))
    assert entry_of(confirmation).kind == "run"
    night.write_text(json.dumps({"changes": []}))
    assert entry_of(confirmation).kind == "confirmation"
    assert entry_of(run).kind == "night"


def test_a_night_brings_its_changes(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    row = {"ratio": 1.2, "ratio_low": 1.1, "ratio_high": 1.3, "rounds": 3, "verdict": "inconclusive"}
    again = {"ratio": 1.1, "ratio_low": 1.08, "ratio_high": 1.12, "rounds": 9, "verdict": "slower"}
    base = {"cell": NEW.id, "before": "run-a", **row}
    measured = {**base, "against": "anchor", "state": "measured-again", "again": again, "confirmed_in": "night-b"}
    changes = [
        {**measured, "digest": "sha256:new"},
        {**base, "against": "series", "state": "no-time", "again": None, "confirmed_in": ""},
        {**base, "state": "measured-again", "again": again},  # of version 1
        {**base, "state": "measured-again", "again": {"verdict": "not-measured"}, "against": "baseline"},
    ]
    path = tmp_path / "nights" / f"{run.id}.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"changes": changes}))
    first, second, third, fourth = entry_of(run).changes
    assert (first.cell, first.before, first.against, first.state) == (NEW.id, "run-a", "anchor", "measured-again")
    assert (first.verdict, first.ratio, first.ratio_low, first.ratio_high, first.rounds) == (
        "slower",
        1.1,
        1.08,
        1.12,
        9,
    )
    assert (first.confirmed_in, first.digest) == ("night-b", "sha256:new")
    assert (second.against, second.verdict, second.ratio, second.rounds) == ("series", "", 1.2, 3)
    assert (third.against, third.confirmed_in) == ("baseline", run.id)
    assert (fourth.verdict, fourth.ratio, fourth.confirmed_in) == ("not-measured", 1.2, "")


@pytest.mark.parametrize("content", ["", "{}", '{"changes": [{}]}', '{"changes": 1'])
def test_a_damaged_night_is_a_sentence(content: str, tmp_path: Path) -> None:
    run = a_run(tmp_path)
    path = tmp_path / "nights" / f"{run.id}.json"
    path.parent.mkdir()
    path.write_text(content)
    with pytest.raises(RecordError, match=str(path)):
        entry_of(run)
