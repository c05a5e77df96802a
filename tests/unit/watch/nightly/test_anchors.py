"""The pinned run of each cell: which it is, when it moves, and when a cell is compared with it."""

import json
from pathlib import Path

import pytest

from runner.analysis.compare.metric_rounds import environment_cell
from runner.analysis.compare.pairing import Side
from runner.core.errors import RunnerError
from runner.core.metrics import BY_NAME
from runner.core.model import Cell
from runner.nights.anchors_file import CellAnchor, device_of, read_anchors, write_anchors
from runner.nights.looks import EarlierNights, Look
from runner.store.run import Run
from runner.watch.nightly.anchors import ANCHOR_EVERY, Anchors, find_anchors, is_due
from runner.watch.nightly.baseline import Baseline
from runner.watch.nightly.compared import anchors_to_compare
from tests.support.fake_runs import cell, make, rounds

FUSED, BASIC = cell("torch-2.x", "nn-lstm"), cell("torch-2.x", "lstm-cell-basic")
STEADY = [1.0, 1.002, 0.999]
NOTHING = EarlierNights(nights=(), looks={}, open_cells={}, seconds={})


def ended(reports: Path, *cells: Cell, later: int = 0, how: str = "done") -> Run:
    """Make a run of some cells."""
    run = make(reports, [record for of in cells for record in rounds(of, STEADY)], later=later)
    run.note("ended", how=how)
    return run


def anchors_of(reports: Path, tonight: Run, history: EarlierNights = NOTHING) -> Anchors:
    return find_anchors(reports, tonight, (FUSED, BASIC), history)


def test_the_anchor_is_the_first_good_run_of_each_cell(tmp_path: Path) -> None:
    ended(tmp_path, FUSED, later=0, how="interrupted")
    first = ended(tmp_path, FUSED, later=10)
    both = ended(tmp_path, FUSED, BASIC, later=20)
    tonight = ended(tmp_path, FUSED, BASIC, later=30)
    anchors = anchors_of(tmp_path, tonight)
    assert {cell: anchor.run for cell, anchor in anchors.by_cell.items()} == {FUSED: first.id, BASIC: both.id}
    assert anchors.pins == {FUSED.id: CellAnchor(first.id), BASIC.id: CellAnchor(both.id)}


def test_a_night_that_left_a_cell_open_is_not_its_anchor(tmp_path: Path) -> None:
    slow, later = ended(tmp_path, FUSED), ended(tmp_path, FUSED, later=10)
    history = EarlierNights((), {}, {slow.id: frozenset({FUSED.id})}, {})
    assert anchors_of(tmp_path, ended(tmp_path, FUSED, later=20), history).by_cell[FUSED].run == later.id


def test_a_night_that_left_an_environment_open_is_no_anchor_of_its_cells(tmp_path: Path) -> None:
    """An import, or an installed size, that became worse is one row for all cells of the environment."""
    other = cell("torch-1.0", "nn-lstm")
    slow, later = ended(tmp_path, FUSED, BASIC, other), ended(tmp_path, FUSED, BASIC, other, later=10)
    history = EarlierNights((), {}, {slow.id: frozenset({environment_cell("torch-2.x", BY_NAME["import"]).id})}, {})
    tonight = ended(tmp_path, FUSED, BASIC, other, later=20)
    anchors = find_anchors(tmp_path, tonight, (FUSED, BASIC, other), history)
    assert {cell: anchor.run for cell, anchor in anchors.by_cell.items()} == {
        FUSED: later.id,
        BASIC: later.id,
        other: slow.id,
    }
    accepted = {FUSED.id: CellAnchor(slow.id, accepted=True)}
    write_anchors(tmp_path, device_of(tonight.journal().header), accepted)
    assert find_anchors(tmp_path, tonight, (FUSED, BASIC), history).pins[BASIC.id] == CellAnchor(slow.id)


def test_a_pin_stays_and_a_new_cell_starts_with_tonight(tmp_path: Path) -> None:
    ended(tmp_path, FUSED)
    pinned = ended(tmp_path, FUSED, later=10)
    write_anchors(tmp_path, device_of(pinned.journal().header), {FUSED.id: CellAnchor(pinned.id)})
    tonight = ended(tmp_path, FUSED, BASIC, later=20)
    anchors = anchors_of(tmp_path, tonight)
    assert {cell: anchor.run for cell, anchor in anchors.by_cell.items()} == {FUSED: pinned.id}
    assert anchors.pins[BASIC.id] == CellAnchor(tonight.id)


def test_a_pinned_run_that_is_gone_is_replaced_with_a_note(tmp_path: Path) -> None:
    first = ended(tmp_path, FUSED)
    tonight = ended(tmp_path, FUSED, later=20)
    write_anchors(tmp_path, device_of(tonight.journal().header), {FUSED.id: CellAnchor("run-x", accepted=True)})
    anchors = anchors_of(tmp_path, tonight)
    assert anchors.pins[FUSED.id] == CellAnchor(first.id)
    assert anchors.notes == ["run run-x, the anchor of 1 test, is gone: the first good run since is the new anchor"]


def test_a_cell_that_a_night_found_faster_has_its_anchor_there(tmp_path: Path) -> None:
    first, faster = ended(tmp_path, FUSED), ended(tmp_path, FUSED, later=10)
    tonight = ended(tmp_path, FUSED, later=20)
    write_anchors(tmp_path, device_of(tonight.journal().header), {FUSED.id: CellAnchor(first.id)})
    looks = {(FUSED.id, first.id): (Look(faster.id, "measured-again", "faster"),)}
    assert anchors_of(tmp_path, tonight, EarlierNights((faster.id,), looks, {}, {})).by_cell[FUSED].run == faster.id


def test_a_damaged_file_of_anchors_is_an_error_and_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "anchors.json").write_text("{")
    with pytest.raises(RunnerError, match=r"anchors\.json"):
        read_anchors(tmp_path, "docker cpu")
    assert (tmp_path / "anchors.json").read_text() == "{"


def test_each_device_has_its_anchors(tmp_path: Path) -> None:
    write_anchors(tmp_path, "docker EPYC", {FUSED.id: CellAnchor("a")})
    write_anchors(tmp_path, "docker H200", {FUSED.id: CellAnchor("b", accepted=True)})
    assert read_anchors(tmp_path, "docker EPYC") == {FUSED.id: CellAnchor("a")}
    assert read_anchors(tmp_path, "docker H200") == {FUSED.id: CellAnchor("b", accepted=True)}
    assert json.loads((tmp_path / "anchors.json").read_text())["version"] == 1


def baseline(run: str, digest: str = "") -> Baseline:
    return Baseline(run=run, side=Side(environment="torch-2.x"), digest=digest or run, facts={})


def nights(count: int) -> EarlierNights:
    """Return a history of nights that are all later than the anchor ``0``."""
    return EarlierNights(tuple(f"1{index:03}" for index in range(count)), {}, {}, {})


def due(*looks: Look, after: int = 0, digest: str = "tonight", crept: bool = False) -> bool:
    return is_due(FUSED, digest, baseline("0"), looks, nights(after), crept=crept)


def test_each_cell_is_compared_with_its_anchor_at_least_every_few_nights() -> None:
    cells = [cell(case=f"case{index}") for index in range(30)]
    history, anchor = nights(ANCHOR_EVERY - 1), baseline("0")
    assert all(is_due(each, "tonight", anchor, (), history, crept=False) for each in cells)
    a_night = [is_due(each, "tonight", anchor, (), nights(1), crept=False) for each in cells]
    assert 3 <= sum(a_night) <= 17  # about a third of them


def test_suspicions_and_open_looks_do_not_wait_for_their_turn() -> None:
    same = Look("1000", "measured-again", "same", digest="older")
    count = next(count for count in range(1, ANCHOR_EVERY) if not due(same, after=count))
    assert due(same, after=count, crept=True)
    for look in (
        same._replace(verdict="inconclusive", leans_slower=True),
        same._replace(verdict="slower", confirmed_in="1000"),
        Look("1000", "no-time"),
        Look("1000", "environment-gone"),
    ):
        assert due(look, after=count), look
    assert not due(same._replace(verdict="inconclusive"), after=count)


def test_the_same_environment_is_not_measured_against_its_anchor_again() -> None:
    assert not due(after=99, digest="0", crept=True)
    same = Look("1000", "measured-again", "same", digest="tonight")
    assert not due(same, after=99, crept=True)
    assert due(same._replace(verdict="inconclusive"), after=99)


def test_an_anchor_with_the_environment_of_the_baseline_needs_no_comparison_of_its_own() -> None:
    anchors = {FUSED: baseline("first", "digest"), BASIC: baseline("first", "digest")}
    baselines = {FUSED: baseline("second", "digest"), BASIC: baseline("second", "other")}
    assert list(anchors_to_compare(anchors, baselines)) == [BASIC]
    assert list(anchors_to_compare(anchors, {FUSED: baseline("first", "digest")})) == [BASIC]
