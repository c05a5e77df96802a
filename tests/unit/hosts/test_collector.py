"""The block of a host is added with the host and the device that measured it."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from runner.core.errors import RecordError
from runner.core.model import RoundDisturbed
from runner.hosts import collector, work
from runner.hosts.collector import Collector
from runner.hosts.planning import new_lease
from runner.plan.document import plan_document
from runner.store.events import BlockLease
from runner.store.run import Run
from runner.watch.imports import archives
from tests.support.fake_hosts import KIND, FakeHosts, block, devices, offer, plan
from tests.support.fake_runs import MACHINE, NOW, good


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The run of a driver, with one block."""
    document = plan_document(plan([block(0)]))
    return Run.create(tmp_path / "driver", document, {block(0).case_id: block(0).spec}, MACHINE, {}, NOW)


def _add(run: Run, folder: Path, name: str) -> tuple[BlockLease, tuple[object, ...]]:
    """Add a block that node7 measured on a device of a name, after a lease to host-a."""
    measured = plan([block(0)])
    machine = {**MACHINE, "host": "node7"}
    header = {"device": "GPU-7", "device_name": name}
    cases = {block(0).case_id: block(0).spec}
    stored = Run.create(folder, plan_document(measured), cases, machine, header, NOW)
    for cell in block(0).cells:
        stored.add(good(cell, 1, [0.001, 0.001], run=stored.id))
    lease = new_lease(block(0).case_id, 1, offer(measured, "a"))
    archive = collector.save(run, lease, work.archive(stored))
    return lease, Collector(run).add(lease, archive)


def test_the_host_is_the_one_that_measured(run: Run, tmp_path: Path) -> None:
    lease, _ = _add(run, tmp_path / "node", KIND)
    assert lease.host == "host-a"
    assert {record.facts["host"] for record in run.records()} == {"node7"}
    (block_in_run,) = run.journal().blocks.values()
    assert (block_in_run.host, block_in_run.device, block_in_run.device_name) == ("node7", "GPU-7", KIND)


def test_disturbed_records_of_a_block_are_kept_with_their_mark_and_the_repeat_counts(run: Run, tmp_path: Path) -> None:
    (of, *_) = block(0).cells
    header = {"device": "GPU-7", "device_name": KIND}
    cases = {block(0).case_id: block(0).spec}
    stored = Run.create(tmp_path / "node", plan_document(plan([block(0)])), cases, MACHINE, header, NOW)
    stored.add(good(of, 1, [0.5], run=stored.id))
    stored.note("disturbed", **RoundDisturbed(of.case_id, 1, 1, (of,), 2.0).event())
    stored.add(replace(good(of, 1, [0.25], run=stored.id), attempt=2))
    stored.note("round", case=of.case_id, round=1)
    lease = new_lease(block(0).case_id, 3, offer(plan([block(0)]), "a"))
    added = Collector(run).add(lease, collector.save(run, lease, work.archive(stored)))
    assert [record.attempt for record in added] == [4]
    journal = run.journal()
    assert [(entry.attempt, entry.round) for entry in journal.counting()] == [(4, 1)]
    assert [entry.attempt for entry in journal.set_aside()] == [3]
    assert journal.finished == {(of.case_id, 1)}


def test_a_block_of_another_kind_of_device_does_not_count(run: Run, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=f"node7 measured on GPU of no kind instead of {KIND}: give the driver"):
        _add(run, tmp_path / "node", "GPU of no kind")
    assert not run.journal().blocks
    assert not list(run.records())


@pytest.mark.parametrize(("number", "kept"), [(errno.ENOSPC, 1), (errno.EMFILE, 1), (errno.ENAMETOOLONG, 0)])
def test_an_archive_outlives_a_disk_that_is_full(
    number: int, kept: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(archives, "_write", fail)
    with pytest.raises(OSError if kept else RecordError):
        _add(run, tmp_path / "node", KIND)
    assert len([*(run.path / collector.FOLDER).iterdir()]) == kept
    monkeypatch.undo()
    _, records = _add(run, tmp_path / "node", KIND)
    assert records


def test_what_happens_to_clocks_is_printed_once_for_each_kind(tmp_path: Path) -> None:
    measured, notes = plan([block(0)]), list[str]()
    clocks = ("locks the clocks of a GPU",)
    offers = {key: offer(measured, key, notes=clocks) for key in ("a", "b")}
    devices(FakeHosts(offers, tmp_path), notes).first_offers()
    assert [note for note in notes if "locks" in note] == ["host-a: locks the clocks of a GPU"]
