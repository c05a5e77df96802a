"""What of a stored run is measured again, from which lock, and what the two runs show."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runner.analysis import dataset
from runner.analysis.comparison_model import Row
from runner.analysis.model import MIN_ROUNDS
from runner.backends.lock_file import parse_lock
from runner.core.errors import NothingSelectedError, RunnerError, UsageError
from runner.core.model import Block, Cell, Measurement, Past, Plan, PlannedCell
from runner.plan.document import plan_document
from runner.plan.pairs import in_turns
from runner.search.reproduce.rebuilt import lock_of_bill
from runner.search.reproduce.result import Reproduction, fact_sentences, state
from runner.search.reproduce.stored import find_stored
from runner.session.execution.header import stored_lock, write_lock
from runner.session.execution.sbom import sbom
from runner.store.header import RunHeader
from runner.store.run import Run
from tests.support.fake_runs import MACHINE, cell, environments, rounds
from tests.unit.session.execution.test_sbom import AT, FACTS, ready

OLD, NEW = cell("torch-1.0"), cell("torch-2.x")
SMALL = cell("torch-1.0", case="2x64-ctc-small")
MEASUREMENT = Measurement(rounds=5, max_rounds=8, seconds=0.5, seed=3, budget=60.0)


def plan(*cells: Cell) -> Plan:
    """Return a plan of cells that all run."""
    return Plan(
        device="cpu",
        backend="venv",
        measurement=MEASUREMENT,
        cells=tuple(PlannedCell(cell=each, device="cpu", kind="vendor", seconds=5.0) for each in cells),
        blocks=tuple(
            Block(case_id=case, spec={}, device="cpu", cells=tuple(each for each in cells if each.case_id == case))
            for case in dict.fromkeys(each.case_id for each in cells)
        ),
        frameworks={each.environment: "torch" for each in cells},
    )


def run_in(reports: Path, *cells: Cell, machine: dict[str, Any] | None = None, harness: str = "9f3c") -> Run:
    """Make a run with a header, and three good rounds of each cell."""
    header = RunHeader(
        at=AT,
        plan="",
        measurement=MEASUREMENT,
        backend="venv",
        device="cpu",
        device_name="AMD EPYC",
        driver=None,
        matrix="matrix.yaml",
        python=None,
        harness=harness,
        digests={each.environment: "sha256:" + "ab" * 32 for each in cells},
    )
    cases: dict[str, Any] = {each.case_id: {} for each in cells}
    known = {**MACHINE, **(machine or {})}
    run = Run.create(reports, plan_document(plan(*cells)), cases, known, header.event(), datetime.now(UTC))
    run.write_environments(environments(cells))
    for each in cells:
        for record in rounds(each, (0.100, 0.101, 0.102)):
            run.add(replace(record, run=run.id))
    run.note("ended", how="done")
    return run


def test_a_run_a_cell_a_glob_and_a_record_name_what_is_measured_again(tmp_path: Path) -> None:
    run = run_in(tmp_path, OLD, SMALL, NEW)
    assert find_stored(tmp_path, run.id).cells == (OLD, SMALL, NEW)
    assert find_stored(tmp_path, str(run.path)).cells == (OLD, SMALL, NEW)
    assert find_stored(tmp_path, f"{run.id}/{NEW.id}").cells == (NEW,)
    assert find_stored(tmp_path, f"{run.id}/torch-1.0").cells == (OLD, SMALL)
    assert find_stored(tmp_path, f"{run.path}/*/2x64*").cells == (SMALL,)
    record = next((run.path / "records").glob("torch-2.x*"))
    assert find_stored(tmp_path, str(record)).cells == (NEW,)


def test_the_settings_are_those_of_the_run_without_its_budget(tmp_path: Path) -> None:
    stored = find_stored(tmp_path, f"{run_in(tmp_path, OLD, SMALL, NEW).id}/torch-1.0")
    assert stored.plan.measurement == replace(MEASUREMENT, budget=None)
    assert stored.plan.frameworks == {"torch-1.0": "torch"}
    assert [block.cells for block in stored.plan.blocks] == [(OLD,), (SMALL,)]
    assert stored.plan.past == Past()


def test_what_is_not_stored_is_refused(tmp_path: Path) -> None:
    run = run_in(tmp_path, OLD)
    with pytest.raises(NothingSelectedError, match=r"no good record of 'torch-9/\*'"):
        find_stored(tmp_path, f"{run.id}/torch-9")
    with pytest.raises(UsageError, match="there is no run"):
        find_stored(tmp_path, "20200101-000000-abcd/torch-1.0")
    with pytest.raises(UsageError, match="is no record"):
        find_stored(tmp_path, str(run.path / "machine.json"))


def test_a_bill_of_materials_makes_the_lock_again() -> None:
    text = lock_of_bill(json.loads(sbom(ready(), FACTS, AT)))
    packages = {package.name: package for package in parse_lock(text.encode(), "lock").packages}
    assert {name: package.version for name, package in packages.items()} == {"numpy": "2.4.6", "torch": "2.13.0+cpu"}
    assert packages["numpy"].hashes == (f"sha256:{'0' * 64}", f"sha256:{'1' * 64}")
    assert packages["torch"].hashes == (f"sha512:{'2' * 128}",)


@pytest.mark.parametrize(
    "bill",
    [
        {},
        {"components": [None, {"type": "library", "name": "numpy", "version": "1"}]},
        {
            "components": [
                {
                    "type": "library",
                    "name": "numpy\n--index-url x",
                    "version": "1",
                    "externalReferences": [{"hashes": [{"alg": "SHA-256", "content": "0" * 64}]}],
                }
            ]
        },
    ],
)
def test_a_bill_without_hashes_or_with_other_names_makes_none(bill: dict[str, Any]) -> None:
    assert lock_of_bill(bill) == ""


def test_a_run_keeps_the_lock_of_each_environment_that_has_one(tmp_path: Path) -> None:
    write_lock(tmp_path, ready())
    write_lock(tmp_path, ready("image", lock=b""))
    assert stored_lock(tmp_path, "torch").read_bytes() == ready().lock
    assert not stored_lock(tmp_path, "image").exists()


def test_in_turns_the_stored_environment_is_the_base() -> None:
    turns = in_turns(plan(OLD, SMALL), plan(NEW), "torch-1.0@run", MIN_ROUNDS)
    then = replace(OLD, environment="torch-1.0@run")
    assert [planned.cell for planned in turns.cells] == [then, NEW]
    assert [block.cells for block in turns.blocks] == [(then, NEW)]
    assert turns.frameworks == {"torch-1.0@run": "torch", "torch-2.x": "torch"}
    assert turns.measurement.max_rounds == 20


@pytest.mark.parametrize(
    ("verdict", "word", "code"),
    [
        ("same", "reproduced", 0),
        ("slower", "differs", 1),
        ("faster", "differs", 1),
        ("inconclusive", "undecided", 1),
        ("not-comparable", "not-comparable", 1),
    ],
)
def test_two_runs_are_reproduced_differ_or_stay_undecided(verdict: Any, word: str, code: int) -> None:
    row = Row(base=OLD, other=OLD, base_seconds=0.1, seconds=0.101, ratio=1.01, rounds=3, verdict=verdict)
    result = Reproduction(run="run", folder=Path("folder"), rows=(row,))
    assert state(row) == word
    assert result.exit_code == code
    assert result.json()["cells"][0]["state"] == word
    assert not result.json()["in_turns"]
    assert "did not alternate" in result.text()


def test_what_differs_between_the_runs_is_listed(tmp_path: Path) -> None:
    before = run_in(tmp_path, OLD, machine={"host": "left"})
    after = run_in(tmp_path, OLD, machine={"host": "right"}, harness="0000")
    changed = environments([OLD])
    changed["torch-1.0"]["packages"]["numpy"] = "2.4.5"
    after.write_environments(changed)
    same = dataset.load_dataset(before)
    sentences = [*fact_sentences(same, dataset.load_dataset(after), {"torch-1.0": "torch-1.0"})]
    assert "harness was 9f3c, and is 0000 now" in sentences
    assert "host was left, and is right now" in sentences
    assert "torch-1.0: numpy was 2.4.6, and is 2.4.5 now" in sentences
    assert not [*fact_sentences(same, same, {"torch-1.0": "torch-1.0"})]


def test_an_environment_of_which_nothing_is_stored_cannot_be_built_again(tmp_path: Path) -> None:
    from runner.search.reproduce.rebuilt import _spec

    stored = find_stored(tmp_path, run_in(tmp_path, OLD).id)
    with pytest.raises(RunnerError, match="neither its lock nor a bill of materials"):
        _spec("torch-1.0", {"python": "3.6.15"}, stored)
    write_lock(stored.run.path, ready("torch-1.0"))
    spec = _spec("torch-1.0", {"python": "3.6.15", "version": "1.0.0"}, stored)
    assert (spec.python, spec.base, spec.release) == ("3.6", "python:3.6-slim", "1.0.0")
    with pytest.raises(RunnerError, match="which Python"):
        _spec("torch-1.0", {}, stored)
