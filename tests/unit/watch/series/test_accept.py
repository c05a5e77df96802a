"""What a person accepts: the anchor of the cells that match, with the reason."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runner.core.errors import NothingSelectedError, UsageError
from runner.core.model import Cell
from runner.history.entries import Acceptance
from runner.nights.anchors_file import CellAnchor, acceptances, device_of, read_anchors, write_anchors
from runner.nights.looks import EarlierNights
from runner.store.run import Run
from runner.watch.nightly.anchors import find_anchors
from runner.watch.series.accept import AcceptanceRequest, accept
from tests.support.changed_runs import change_header
from tests.support.fake_runs import cell, make, rounds

FUSED, BASIC = cell("torch-2.x", "nn-lstm"), cell("torch-2.x", "lstm-cell-basic")
NOTHING = EarlierNights(nights=(), looks={}, open_cells={}, seconds={})


def ended(reports: Path, *cells: Cell, later: int = 0, how: str = "done") -> Run:
    """Make a run of some cells."""
    run = make(reports, [record for of in cells for record in rounds(of, [1.0, 1.002, 0.999])], later=later)
    run.note("ended", how=how)
    return run


def accepted(reports: Path, pattern: str, run: str | None, reason: str = "a new kernel") -> Acceptance:
    request = AcceptanceRequest(patterns=(pattern,), run=run, reason=reason, person="ann", at="2026-11-24T12:00:00Z")
    return accept(reports, request)


def test_what_a_person_accepts_is_the_anchor_of_the_cells_that_match(tmp_path: Path) -> None:
    first, slow = ended(tmp_path, FUSED, BASIC), ended(tmp_path, FUSED, BASIC, later=10)
    tonight = ended(tmp_path, FUSED, BASIC, later=20)
    first_acceptance = accepted(tmp_path, "torch-2.x/nn-lstm/*", slow.id)
    assert (first_acceptance.run, first_acceptance.cells) == (slow.id, (FUSED.id,))
    anchors = find_anchors(tmp_path, tonight, (FUSED, BASIC), NOTHING)
    assert {cell: anchor.run for cell, anchor in anchors.by_cell.items()} == {FUSED: slow.id, BASIC: first.id}
    both = accepted(tmp_path, "torch-2.x", None)
    assert (both.run, both.cells) == (tonight.id, tuple(sorted({FUSED.id, BASIC.id})))


def test_only_good_records_of_ended_runs_are_accepted(tmp_path: Path) -> None:
    run = ended(tmp_path, FUSED)
    with pytest.raises(NothingSelectedError, match=r"has no good record of torch-9\.x"):
        accepted(tmp_path, "torch-9.x", run.id)
    half = ended(tmp_path, FUSED, later=10, how="interrupted")
    with pytest.raises(UsageError, match="is unfinished"):
        accepted(tmp_path, "torch-2.x", half.id)
    assert not (tmp_path / "anchors.json").exists()


def test_a_run_of_several_hosts_is_no_baseline(tmp_path: Path) -> None:
    run = ended(tmp_path, FUSED)
    change_header(run, executor="dask://head:8786")
    with pytest.raises(UsageError, match="was measured on several hosts"):
        accepted(tmp_path, "torch-2.x", run.id)
    assert not (tmp_path / "anchors.json").exists()


def test_no_acceptance_is_lost_where_several_accept_at_once(tmp_path: Path) -> None:
    ended(tmp_path, FUSED)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: accepted(tmp_path, "torch-2.x", None, f"reason {number}"), range(24)))
    assert {each.reason for each in acceptances(tmp_path)} == {f"reason {number}" for number in range(24)}


@pytest.mark.parametrize("reason", ["", " \n", "x" * 2001])
def test_a_reason_is_a_text(reason: str, tmp_path: Path) -> None:
    ended(tmp_path, FUSED)
    with pytest.raises(UsageError, match="a reason has"):
        accepted(tmp_path, "torch-2.x", None, reason)
    assert not (tmp_path / "anchors.json").exists()


def test_a_night_does_not_take_back_what_was_accepted_while_it_compared(tmp_path: Path) -> None:
    run = ended(tmp_path, FUSED)
    device = device_of(run.journal().header)
    old, pin = CellAnchor("20991231-000000-aaaa"), CellAnchor(run.id, accepted=True)
    write_anchors(tmp_path, device, {FUSED.id: old})
    read = read_anchors(tmp_path, device)
    accepted(tmp_path, "torch-2.x", run.id, "oneDNN 3.8")
    write_anchors(tmp_path, device, {FUSED.id: old}, read=read)
    assert read_anchors(tmp_path, device) == {FUSED.id: pin}
    write_anchors(tmp_path, device, {FUSED.id: old}, read={FUSED.id: pin})  # its run is gone
    assert read_anchors(tmp_path, device) == {FUSED.id: old}


def test_the_reason_is_kept_when_the_anchor_moves_on(tmp_path: Path) -> None:
    run = ended(tmp_path, FUSED)
    accepted(tmp_path, "torch-2.x", run.id, "oneDNN\n 3.8")
    device = device_of(run.journal().header)
    write_anchors(tmp_path, device, {FUSED.id: CellAnchor("a-faster-night")})
    write_anchors(tmp_path, "another device", {})
    accepted(tmp_path, "torch-2.x", run.id, "again")
    assert read_anchors(tmp_path, device) == {FUSED.id: CellAnchor(run.id, accepted=True)}
    assert [each.reason for each in acceptances(tmp_path)] == ["oneDNN 3.8", "again"]
    level, _ = acceptances(tmp_path)
    assert (level.cells, level.device, level.run) == ((FUSED.id,), device, run.id)
    assert (level.reason, level.person, level.at) == ("oneDNN 3.8", "ann", "2026-11-24T12:00:00Z")
