"""`run --profile` on devices that live in memory: after all rounds, and only what is missing when resumed."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from runner.core.errors import EngineError
from runner.core.model import Cell
from runner.core.model.cells import is_twin
from runner.plan.pairs import with_twins
from runner.session.execution.resume import past
from runner.session.execution.side_by_side import remaining_seconds
from runner.store.profile_files import profile_path, read_profiles
from runner.store.run import Run
from tests.support.fake_servers import FakeBackend
from tests.unit.plan import test_assignment
from tests.unit.session.test_session_devices import measured, run  # noqa: F401  a fixture


def ids() -> list[str]:
    """Return the cells of the plan."""
    return [cell.id for block in test_assignment.plan().blocks for cell in block.cells]


def profiled(stored: Run) -> list[str]:
    """Return the cells that have a profile with a table."""
    return [cell_id for cell_id, profile in read_profiles(stored.path, ids()) if not profile.reason]


def requests(backend: FakeBackend) -> list[str]:
    """Return the operations that were requested in children, server by server."""
    return [each["op"] for server in backend.opened for each in server.requests if each["op"] in ("measure", "profile")]


def test_every_cell_gets_a_profile_after_the_last_round_of_every_device(run: Run) -> None:  # noqa: F811
    backend = FakeBackend()
    measured(run, backend, test_assignment.with_wide(test_assignment.plan()), profile=True)
    operations = requests(backend)
    assert operations == sorted(operations)  # "measure" comes before "profile", on all devices
    assert Counter(operations)["profile"] == len(ids())
    assert sorted(profiled(run)) == sorted(ids())
    assert all(server.closed == 1 for server in backend.opened)


def test_twins_have_profiles_too_after_all_others_and_plain_processes_have_none(run: Run) -> None:  # noqa: F811
    plan, backend = with_twins(test_assignment.plan()), FakeBackend()
    twins = {cell.id for block in plan.blocks for cell in block.cells if is_twin(cell.environment)}
    assert twins
    measured(run, backend, plan, profile=True)
    assert {cell_id for cell_id, _ in read_profiles(run.path, twins)} == twins
    assert sorted(profiled(run)) == sorted(ids())


def test_a_run_without_the_option_has_none(run: Run) -> None:  # noqa: F811
    backend = FakeBackend()
    measured(run, backend, test_assignment.plan())
    assert not profiled(run)
    assert "profile" not in requests(backend)
    assert not (run.path / "profiles").exists()


def test_a_cell_without_a_good_record_has_no_profile_and_a_failed_one_is_a_sentence(run: Run) -> None:  # noqa: F811
    backend = FakeBackend()
    backend.does("a/x", "nan", *(["ok"] * 12), "crash")
    lines = measured(run, backend, test_assignment.plan(), profile=True)
    stored = dict(read_profiles(run.path, ids()))
    assert len(stored) == len(ids()) - 1
    (failed,) = (cell_id for cell_id, profile in stored.items() if profile.reason)
    assert f"{failed}: no profile: crash: it was crash" in lines


def test_a_resumed_run_takes_the_profiles_that_are_missing(run: Run) -> None:  # noqa: F811
    plan, backend = test_assignment.plan(), FakeBackend()
    measured(run, backend, plan, profile=True)
    first, second, *_ = (profile_path(run.path, cell_id) for cell_id in ids())
    first.unlink()
    second.write_text(second.read_text().replace("0.25", "0.26", 1))  # its checksum shows that
    again = FakeBackend()
    measured(run, again, replace(plan, past=past(run, run.journal())), profile=True)
    assert requests(again) == ["profile"] * 2
    assert sorted(profiled(run)) == sorted(ids())


def test_a_run_whose_engine_is_lost_in_a_profile_goes_on_with_it(run: Run) -> None:  # noqa: F811
    plan, backend = test_assignment.plan(), FakeBackend()
    gpus = (test_assignment.FIRST,)
    rounds = 3 * len({Cell.parse(cell_id).case for cell_id in ids()})
    backend.does("a/x", *(["ok"] * rounds), "loses-its-engine")
    with pytest.raises(EngineError):
        measured(run, backend, plan, gpus=gpus, profile=True)
    assert not profiled(run)
    again = FakeBackend()
    measured(run, again, replace(plan, past=past(run, run.journal())), gpus=gpus, profile=True)
    assert "measure" not in requests(again)
    assert sorted(profiled(run)) == sorted(ids())


def test_profiles_have_what_the_rounds_leave_of_the_budget() -> None:
    plan, now = test_assignment.plan(), [100.0]
    limited = replace(plan, measurement=replace(plan.measurement, budget=60.0))
    remaining = remaining_seconds(limited, 20.0, lambda: now[0])
    assert remaining() == 40.0
    now[0] = 150.0
    assert remaining() == -10.0
    assert remaining_seconds(plan, 20.0, lambda: now[0])() == float("inf")


def test_the_files_are_named_after_the_cells(tmp_path: Path) -> None:
    assert profile_path(tmp_path, "a/x/w/c/train/fp32") == tmp_path / "profiles" / "a~x~w~c~train~fp32.json"
