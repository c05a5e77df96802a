"""A night: what it compares with, what it measures again, and what it says of it."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.analysis import dataset
from runner.analysis.compare.pairing import Side
from runner.analysis.comparison_model import Comparison, Row, Verdict
from runner.backends import restored
from runner.backends.venv import VenvBackend
from runner.core.model import Block, Measurement, Plan, PlannedCell, Skip
from runner.nights.looks import earlier_nights
from runner.nights.night import End, Night, NightChange, Stage, State
from runner.nights.night_files import nights_folder, write_night
from runner.plan.pairs import MAX_ROUNDS_IN_TURNS
from runner.report.night_changes import night_changes
from runner.session.run_entry import change_entry
from runner.store.run import Run
from runner.watch.nightly import baseline
from runner.watch.nightly.baseline import Baseline
from runner.watch.nightly.confirmation import confirmation_plan
from runner.watch.nightly.night_record import night_change, night_pair
from runner.watch.nightly.text import night_text
from tests.support.changed_runs import change_header
from tests.support.fake_runs import bad, cell, make, rounds

FUSED, BASIC = cell("torch-2.x", "nn-lstm"), cell("torch-2.x", "lstm-cell-basic")
STEADY, SLOW = [1.0, 1.002, 0.999, 1.001], [1.1, 1.102, 1.099, 1.101]


def ended(reports: Path, medians: dict[Any, list[float]], *, later: int = 0, how: str = "done") -> Run:
    """Make a run of some cells that ended somehow."""
    run = make(reports, [record for of, values in medians.items() for record in rounds(of, values)], later=later)
    run.note("ended", how=how)
    return run


def baselines_of(reports: Path, tonight: Run, failed: tuple[str, ...] = ()) -> baseline.Baselines:
    """Look for the last good runs of all that a run has."""
    return baseline.find_baselines(
        reports, tonight, dataset.load_dataset(tonight), failed, earlier_nights(reports).open_cells
    )


def test_a_cell_that_another_host_measured_is_no_baseline(tmp_path: Path) -> None:
    """A run of several hosts has the driver's machine in its header, and the same processor may be in both."""
    remote = [replace(record, facts={**record.facts, "host": "node-b"}) for record in rounds(FUSED, STEADY)]
    make(tmp_path, [*remote, *rounds(BASIC, STEADY)], host="node-a").note("ended", how="done")
    tonight = make(tmp_path, [*rounds(FUSED, STEADY), *rounds(BASIC, STEADY)], later=10, host="node-a")
    baselines = baselines_of(tmp_path, tonight)
    assert set(baselines.by_cell) == {BASIC}
    assert list(baselines.refused) == [FUSED]
    assert "the host differs: node-b for run" in baselines.refused[FUSED]


def of(
    row_verdict: Verdict, *, again: Verdict | None = None, state: State = "measured-again", ratio: float = 1.1
) -> NightChange:
    """Return a change of ONE since run-a."""
    row = Row(
        base=FUSED,
        other=FUSED,
        ratio=ratio,
        ratio_low=ratio - 0.02,
        ratio_high=ratio + 0.02,
        rounds=5,
        verdict=row_verdict,
    )
    second = None if again is None else replace(row, verdict=again, runs=("pair",))
    return night_change(
        FUSED,
        before="run-a",
        row=row,
        state=state,
        again=second,
        reason="" if second else "why not",
        confirmed_in="20261121-023000-ab12" if again == "slower" else "",
    )


def the_night(*changes: NightChange, run: str = "20261121-023000-ab12", measured: int = 2) -> Night:
    return Night(
        run=run,
        at="2026-11-21T02:30:00Z",
        device="cpu",
        device_name="EPYC",
        backend="docker",
        state="done",
        measured=measured,
        compared=2,
        changes=changes,
    )


def test_each_cell_is_compared_with_the_newest_run_that_has_it(tmp_path: Path) -> None:
    both = ended(tmp_path, {FUSED: STEADY, BASIC: STEADY})
    newer = ended(tmp_path, {FUSED: STEADY}, later=10)
    tonight = ended(tmp_path, {FUSED: STEADY, BASIC: STEADY}, later=20)
    baselines = baselines_of(tmp_path, tonight)
    assert {known.run for known in baselines.by_cell.values()} == {both.id, newer.id}
    assert baselines.by_cell[FUSED].run == newer.id
    assert baselines.by_cell[BASIC].run == both.id


@pytest.mark.parametrize("how", ["interrupted", "engine", "error"])
def test_a_run_that_did_not_end_is_no_baseline(how: str, tmp_path: Path) -> None:
    earlier = ended(tmp_path, {FUSED: STEADY})
    ended(tmp_path, {FUSED: SLOW}, later=10, how=how)
    assert baselines_of(tmp_path, ended(tmp_path, {FUSED: STEADY}, later=20)).by_cell[FUSED].run == earlier.id


def test_a_cell_that_a_night_left_open_or_found_slower_is_no_baseline(tmp_path: Path) -> None:
    earlier = ended(tmp_path, {FUSED: STEADY})
    slow = ended(tmp_path, {FUSED: SLOW}, later=10)
    tonight = ended(tmp_path, {FUSED: SLOW}, later=20)
    for change, good in (
        (of("inconclusive", again="slower"), earlier.id),
        (of("slower", state="no-time"), earlier.id),
        (of("slower", state="interrupted"), earlier.id),
        (of("slower", again="same"), slow.id),
        (of("slower", again="faster"), slow.id),
        (of("slower", state="same-environment"), slow.id),
        (of("slower", again="inconclusive"), earlier.id),
        (of("slower", again="not-measured"), earlier.id),
        (of("slower", state="environment-gone"), earlier.id),
    ):
        write_night(the_night(change, run=slow.id), tmp_path)
        assert baselines_of(tmp_path, tonight).by_cell[FUSED].run == good, change
    (nights_folder(tmp_path) / f"{slow.id}.json").write_text("[]")
    assert baselines_of(tmp_path, tonight).by_cell[FUSED].run == slow.id


@pytest.mark.parametrize("stage", ["measure", "compare"])
@pytest.mark.parametrize("state", ["killed", "interrupted", "failed"])
def test_the_run_of_a_night_that_ended_before_it_compared_is_no_baseline(
    stage: Stage, state: End, tmp_path: Path
) -> None:
    earlier = ended(tmp_path, {FUSED: STEADY})
    slow = ended(tmp_path, {FUSED: SLOW}, later=10)
    tonight = ended(tmp_path, {FUSED: SLOW}, later=20)
    write_night(replace(the_night(run=slow.id), stage=stage, state=state), tmp_path)
    write_night(replace(the_night(run=tonight.id), stage="compare", state="running"), tmp_path)
    assert baselines_of(tmp_path, tonight).by_cell[FUSED].run == earlier.id
    assert not earlier_nights(tmp_path).open_cells[tonight.id]


def test_a_run_that_may_not_be_compared_is_passed_over_and_named_where_no_other_is(tmp_path: Path) -> None:
    tonight = ended(tmp_path, {FUSED: STEADY}, later=20)
    other = make(
        tmp_path,
        [replace(record, facts={**record.facts, "harness": "other"}) for record in rounds(FUSED, STEADY)],
        later=10,
    )
    other.note("ended", how="done")
    baselines = baselines_of(tmp_path, tonight)
    assert not baselines.by_cell
    assert baselines.refused[FUSED].startswith("the harness version differs: other for run ")
    older = ended(tmp_path, {FUSED: STEADY})
    baselines = baselines_of(tmp_path, tonight)
    assert baselines.by_cell[FUSED].run == older.id
    assert not baselines.refused


def test_a_run_on_another_device_is_passed_over(tmp_path: Path) -> None:
    on_another_device = make(tmp_path, rounds(FUSED, STEADY))
    change_header(on_another_device, device="GPU-1")
    on_another_device.note("ended", how="done")
    assert not baselines_of(tmp_path, ended(tmp_path, {FUSED: STEADY}, later=20)).by_cell


def test_a_run_on_another_host_is_refused_with_both_names(tmp_path: Path) -> None:
    make(tmp_path, rounds(FUSED, STEADY), host="machine-a").note("ended", how="done")
    tonight = make(tmp_path, rounds(FUSED, STEADY), later=20, host="machine-b")
    baselines = baselines_of(tmp_path, tonight)
    assert not baselines.by_cell
    assert baselines.refused[FUSED].startswith("the host differs: machine-a for run ")
    assert baselines.refused[FUSED].endswith(", machine-b for tonight")


@pytest.mark.parametrize("board", ["GPU-1", "GPU-2"])
def test_a_case_is_compared_with_itself_on_the_same_board_alone(tmp_path: Path, board: str) -> None:
    def finished_run(uuid: str, devices: str, later: int) -> Run:
        facts = {"device": "H200", "device_name": "H200", "device_uuid": uuid}
        run = make(
            tmp_path,
            [replace(record, facts={**record.facts, **facts}) for record in rounds(FUSED, STEADY)],
            later=later,
        )
        change_header(run, device=devices, device_name=f"{devices.count(',') + 1} x H200")
        run.note("ended", how="done")
        return run

    finished_run("GPU-1", "GPU-1,GPU-2", 0)
    tonight = baselines_of(tmp_path, finished_run(board, "GPU-1,GPU-2,GPU-3", 20))
    assert bool(tonight.by_cell) == (board == "GPU-1")
    assert (FUSED in tonight.refused) == (board == "GPU-2")


def test_a_cell_that_failed_tonight_names_the_run_where_it_did_not(tmp_path: Path) -> None:
    earlier = ended(tmp_path, {FUSED: STEADY, BASIC: STEADY})
    records = [*rounds(FUSED, STEADY), bad(BASIC, 0, "crash", "it fell")]
    tonight = make(tmp_path, records, later=20)
    tonight.note("ended", how="done")
    assert baselines_of(tmp_path, tonight, (BASIC.id,)).newly_failed == {BASIC.id: earlier.id}


def test_a_broken_run_costs_a_note_and_not_the_night(tmp_path: Path) -> None:
    earlier = ended(tmp_path, {FUSED: STEADY})
    broken = ended(tmp_path, {FUSED: STEADY}, later=10)
    (broken.path / "journal.jsonl").write_text("nonsense\nnonsense\n")
    baselines = baselines_of(tmp_path, ended(tmp_path, {FUSED: STEADY}, later=20))
    assert baselines.by_cell[FUSED].run == earlier.id
    assert baselines.notes[0].startswith(f"run {broken.id} cannot be read: ")


def test_rows_are_of_two_runs_and_unpaired(tmp_path: Path) -> None:
    earlier = ended(tmp_path, {FUSED: STEADY, BASIC: STEADY})
    tonight = ended(tmp_path, {FUSED: SLOW, BASIC: STEADY}, later=20)
    baselines = baselines_of(tmp_path, tonight)
    rows = dict(baseline.compare_with_baselines(dataset.load_dataset(tonight), baselines.by_cell, 0.02))
    assert rows[FUSED].verdict == "slower"
    assert rows[FUSED].ratio == pytest.approx(1.1, rel=1e-3)
    assert rows[BASIC].verdict == "same"
    assert rows[FUSED].code == "different-runs"
    assert rows[FUSED].runs == (earlier.id, tonight.id)
    assert baseline.compare_with_baselines(dataset.load_dataset(tonight), {}, 0.02) == []


@pytest.mark.parametrize(
    ("verdict", "looks"),
    [
        ("slower", (True, True)),
        ("faster", (True, True)),
        ("inconclusive", (True, False)),
        ("same", (False, False)),
        ("not-comparable", (False, False)),
    ],
)
def test_an_unchanged_environment_needs_a_decided_verdict(verdict: Verdict, looks: tuple[bool, bool]) -> None:
    row = Row(base=FUSED, other=FUSED, verdict=verdict)
    assert (
        baseline.looks_changed(row, same_environment=False),
        baseline.looks_changed(row, same_environment=True),
    ) == looks


def planned(*, rounds: int = 3, max_rounds: int = 0) -> Plan:
    """Return a plan of three cells, two of one case, at 2 s a round each."""
    forward = replace(FUSED, phase="forward")
    cells = (FUSED, forward, BASIC)
    return Plan(
        device="cpu",
        backend="docker",
        measurement=Measurement(rounds=rounds, max_rounds=max_rounds, budget=99.0),
        cells=(
            *(PlannedCell(cell=each, device="cpu", kind="vendor", seconds=2.0 * rounds) for each in cells),
            PlannedCell(cell=replace(FUSED, case="other"), device="cpu", skip=Skip("excluded", "no")),
        ),
        blocks=(Block(case_id=FUSED.case_id, spec={"name": "it"}, device="cpu", cells=cells),),
        frameworks={"torch-2.x": "torch"},
    )


def test_candidates_and_their_baseline_share_one_plan() -> None:
    plan = confirmation_plan(planned(), [BASIC, FUSED], "torch-2.x@run-a", 600.0)
    chosen = {FUSED, BASIC}
    was = {replace(candidate, environment="torch-2.x@run-a") for candidate in chosen}
    (block,) = plan.blocks
    assert set(block.cells) == {*was, *chosen}
    assert block.spec == {"name": "it"}
    base_first = ["torch-2.x@run-a"] * 2 + ["torch-2.x"] * 2
    assert [entry.cell.environment for entry in plan.cells] == base_first
    assert {entry.kind for entry in plan.cells} == {"vendor"}
    assert plan.frameworks == {"torch-2.x@run-a": "torch", "torch-2.x": "torch"}
    assert (plan.measurement.rounds, plan.measurement.round_limit, plan.measurement.budget) == (
        3,
        MAX_ROUNDS_IN_TURNS,
        600.0,
    )


def test_a_single_round_is_not_enough_for_a_verdict() -> None:
    plan = confirmation_plan(planned(rounds=1, max_rounds=20), [FUSED], "torch-2.x@run-a", 600.0)
    assert (plan.measurement.rounds, plan.measurement.round_limit) == (3, 20)
    assert plan.cells[0].seconds == 2.0 * 3


def test_only_a_confirmed_regression_fails_a_night() -> None:
    assert the_night(of("inconclusive", again="slower")).exit_code == 1
    for change in (
        of("slower", again="inconclusive"),
        of("slower", again="same"),
        of("faster", again="faster", ratio=0.9),
        of("slower", again="not-measured"),
        of("slower", state="environment-gone"),
        of("slower", state="same-environment"),
        of("slower", state="no-time"),
    ):
        assert the_night(change).exit_code == 0, change
    assert the_night().exit_code == 0
    assert the_night(measured=0).exit_code == 1


def test_the_text_names_confirmed_and_unconfirmed_changes() -> None:
    pair = Comparison(base="torch-2.x@run-a", others=("torch-2.x",), device="cpu", device_name="EPYC", rows=())
    night = the_night(of("inconclusive", again="slower"), of("slower", state="environment-gone"))
    night = replace(night, pairs=(night_pair("torch-2.x", Path("there"), pair),), notes=("so",))
    text = night_text(night)
    assert "night of 2026-11-21 02:30 UTC, run 20261121-023000-ab12, on EPYC, docker" in text
    assert "torch-2.x against run run-a" in text
    assert "  slower: nn-lstm asr-lstm/1x320-ce-short train fp32: 10 % slower (8.0 % to " in text
    assert "alternating, 5 rounds" in text
    assert "  looks slower: nn-lstm" in text
    assert "  1 test: why not" in text
    assert "measured alternately in there" in text
    assert "note: so" in text
    assert text.endswith("1 regression confirmed; 1 of 2 candidates were not re-measured")
    assert night_text(the_night()).endswith("no regression confirmed")
    assert night_text(replace(the_night(), state="interrupted")).endswith("; the night was interrupted")


MEMORY = {"metric": "memory", "base_amount": 46 * 2.0**20, "amount": 60 * 2.0**20, "ratio": 1.304}


def worse(**changes: Any) -> NightChange:
    """Return a regression that tonight confirmed in turns, of another metric or size."""
    slower = of("slower", again="slower")
    assert slower.again is not None
    verdict = "more" if changes.get("metric") == "memory" else "slower"
    ends = {"ratio_low": changes["ratio"] - 0.01, "ratio_high": changes["ratio"] + 0.01}
    values = {name: value for name, value in changes.items() if name != "metric"}
    again = replace(slower.again, **values, **ends, verdict=verdict)
    return replace(slower, **changes, verdict=verdict, again=again)


def test_a_night_names_the_values_of_other_metrics_than_time_in_its_lines_and_its_summary() -> None:
    text = night_text(the_night(worse(**MEMORY)))
    assert "  more: nn-lstm asr-lstm/1x320-ce-short train fp32, peak memory of the steps: 1.30x more memory (" in text
    assert "), 46.0 MiB → 60.0 MiB, alternating, 5 rounds; " in text
    assert text.endswith("\n1 regression confirmed: 1.30x more memory, 46.0 MiB → 60.0 MiB")


def test_the_last_line_says_what_the_strip_of_the_site_says() -> None:
    """A regression that an earlier night confirmed is not confirmed again; one against two runs is one."""
    tonight = of("slower", again="slower")
    earlier = replace(worse(**MEMORY), confirmed_in="20261120-023000-ab12")
    better = replace(of("faster", again="faster"), cell=BASIC.id)
    night = the_night(tonight, replace(tonight, before="run-b", against="anchor"), earlier, better)
    last = night_text(night).splitlines()[-1]
    assert last == "1 regression confirmed; 1 earlier one stands; 1 improvement"
    assert last == night_changes(night.run, map(change_entry, night.changes)).text()
    assert night.exit_code == 1


def test_the_summary_of_several_metrics_has_the_largest_change_of_each() -> None:
    imports = worse(metric="import", ratio=1.15, base_amount=2.0, amount=2.3)
    other = replace(worse(**{**MEMORY, "ratio": 1.1}), cell=BASIC.id)
    night = the_night(of("slower", again="slower"), worse(**MEMORY), other, imports)
    assert night_text(night).endswith(
        "4 regressions confirmed: 10 % slower, more memory in 2 tests, up to 1.30x, "
        "15 % slower to import, 2.00 s → 2.30 s"
    )


def test_the_text_names_the_night_that_confirmed_what_tonight_could_not_measure() -> None:
    gone = replace(of("inconclusive", state="environment-gone"), confirmed_in="20261121-023000-ab12")
    night = the_night(gone)
    assert night.exit_code == 1
    assert (
        "  slower: nn-lstm asr-lstm/1x320-ce-short train fp32: confirmed by night 20261121-023000-ab12"
        in night_text(night)
    )
    assert night.json()["changes"][0]["confirmed_in"] == "20261121-023000-ab12"


def test_a_creep_is_named_with_the_date_of_its_anchor() -> None:
    change = replace(of("slower", again="slower", ratio=1.052), before="20260104-023000-ab12", against="anchor")
    night = the_night(change)
    assert night.exit_code == 1
    assert "torch-2.x against anchor 20260104-023000-ab12, 2026-01-04 02:30 UTC" in night_text(night)
    assert "train fp32: 5.2 % slower (3.2 % to 7.2 %) than the anchor of 2026-01-04, " in night_text(night)
    assert night.json()["changes"][0]["against"] == "anchor"


def test_undecided_cells_without_time_are_counted_not_listed() -> None:
    text = night_text(the_night(of("inconclusive", state="no-time"), of("inconclusive", state="no-time")))
    assert "2 tests: why not" in text
    assert "nn-lstm" not in text


def test_a_night_is_kept_whole_beside_the_runs(tmp_path: Path) -> None:
    change = replace(of("slower", again="slower"), ratio_low=None)
    path = write_night(the_night(change), tmp_path)
    assert path == tmp_path / "nights" / "20261121-023000-ab12.json"
    document = json.loads(path.read_text())
    assert (document["version"], document["exit_code"], document["state"]) == (2, 1, "done")
    (change,) = document["changes"]
    assert change["cell"] == FUSED.id
    assert change["ratio_low"] is None
    assert math.isclose(change["again"]["ratio"], 1.1)
    assert earlier_nights(tmp_path).open_cells == {"20261121-023000-ab12": {FUSED.id}}
    assert earlier_nights(tmp_path / "nowhere").open_cells == {}


def test_a_venv_of_an_earlier_run_is_found_by_its_digest(tmp_path: Path) -> None:
    backend, digest = VenvBackend(tmp_path), "sha256:" + "ab" * 32
    home = tmp_path / "venvs" / ("np-" + "ab" * 6)
    home.mkdir(parents=True)
    assert restored(backend, "np", digest, {"framework": "numpy"}) is None  # half-made
    (home / ".ready").touch()
    environment = restored(backend, "np", digest, {"framework": "numpy"})
    assert environment is not None
    assert (environment.handle, environment.digest, environment.framework) == (
        str(home / "bin" / "python"),
        digest,
        "numpy",
    )
    assert restored(backend, "np", "", {}) is None


@pytest.mark.parametrize(
    ("environment", "digest", "facts"),
    [
        ("../reports/runs/20261120-104500-aaaa/x", "sha256:" + "ab" * 32, {}),
        ("np", "sha256:../reports/x", {}),
        ("np", "ab" * 32, {}),
        ("np", "sha256:" + "ab" * 32, {"env": {"PATH": "/tmp"}}),
        ("np", "sha256:" + "ab" * 32, {"env": {"A B": "1"}}),
    ],
)
def test_a_stored_name_that_no_matrix_can_have_restores_nothing(
    environment: str, digest: str, facts: dict[str, Any], tmp_path: Path
) -> None:
    backend = VenvBackend(tmp_path)
    home = backend.home_of(environment, digest)
    home.mkdir(parents=True, exist_ok=True)
    (home / ".ready").touch()
    assert restored(backend, environment, digest, facts) is None


@pytest.mark.parametrize(
    ("started_here", "variables", "may"), [(True, True, True), (False, True, False), (False, False, True)]
)
def test_variables_of_a_run_that_somebody_sent_are_not_set(*, started_here: bool, variables: bool, may: bool) -> None:
    facts = {"env": {"LD_PRELOAD": "/tmp/x.so"}} if variables else {}
    baseline = Baseline(run="r", side=Side(environment="np"), digest="d", facts=facts, started_here=started_here)
    assert baseline.may_start is may


def test_an_accepted_run_is_the_baseline_whatever_its_night_found(tmp_path: Path) -> None:
    ended(tmp_path, {FUSED: STEADY})
    slow = ended(tmp_path, {FUSED: SLOW}, later=10)
    tonight = ended(tmp_path, {FUSED: SLOW}, later=20)
    write_night(the_night(of("slower", again="slower"), run=slow.id), tmp_path)
    history, results = earlier_nights(tmp_path), dataset.load_dataset(tonight)
    baselines = baseline.find_baselines(
        tmp_path, tonight, results, (), history.open_cells, accepted={FUSED.id: slow.id}
    )
    assert baselines.by_cell[FUSED].run == slow.id
