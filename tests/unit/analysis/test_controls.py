"""Controls: an environment beside itself, the noise floor it gives, and a canary that tells the machine's drift."""

import io
import json
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from runner.analysis import dataset
from runner.analysis.compare import compare
from runner.analysis.compare.comparison import summarise
from runner.analysis.controls import AAPair, aa_pairs, canary_drift, different_pairs
from runner.analysis.quality import quality_issues
from runner.core.model import Canary, Cell, Measurement, Outcome, Plan, PlannedCell, Provisioned, Record
from runner.core.model.cells import twin
from runner.measure.canary import PRODUCTS, WARM_UP, main
from runner.plan import pairs
from runner.store.journal import read
from runner.store.journal_writer import append
from tests.support.fake_runs import cell, make, rounds
from tests.support.fake_servers import FakeBackend, block, cells, events

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")
TWIN = twin(BASE)


def plan(*of: Cell) -> Plan:
    return Plan(
        device="cpu",
        backend="fake",
        measurement=Measurement(),
        cells=tuple(PlannedCell(cell=cell_, device="cpu", kind="vendor", seconds=3.0) for cell_ in of),
        blocks=(block(*of),),
        frameworks={cell_.environment: "torch" for cell_ in of},
    )


def test_each_case_gets_its_first_cell_once_more_on_a_server_of_its_own() -> None:
    controlled = pairs.with_twins(plan(*cells("a/x", "a/y", "b/x")))
    assert [cell_.environment for cell_ in controlled.blocks[0].cells] == ["a", "a", "b", "a@twin"]
    assert controlled.frameworks == {"a": "torch", "b": "torch", "a@twin": "torch"}
    added = controlled.cells[-1]
    assert (added.cell.id, added.kind, added.seconds) == ("a@twin/x/rnn-step/tiny/train/fp32", "vendor", 3.0)


def test_a_case_of_one_cell_gets_none() -> None:
    alone = plan(*cells("a/x"))
    assert pairs.with_twins(alone) == alone


def test_a_twin_is_what_its_origin_is_and_is_lost_with_it() -> None:
    def made(name: str) -> Provisioned:
        return Provisioned(environment=name, framework="torch", handle="h", digest="d", seconds=0.0, cached=True)

    twins = pairs.with_twins(plan(*cells("a/x", "b/x")))
    assert pairs.add_controls(twins, {"a": made("a")}) == {"a": made("a"), "a@twin": made("a@twin")}
    assert pairs.add_controls(twins, {"b": made("b")}) == {"b": made("b")}


def test_the_canary_is_asked_before_each_case_in_each_round() -> None:
    first, second = block(*cells("a/x", "b/x", case="one")), block(*cells("a/x", "b/x", case="two"))
    all_events = list(events(FakeBackend(), first, second, rounds=2, canary=lambda: 0.25))
    canaries = [(event.case_id, event.round, event.seconds) for event in all_events if isinstance(event, Canary)]
    assert sorted(canaries) == [(f"rnn-step/{name}", number, 0.25) for name in ("one", "two") for number in (1, 2)]
    for index, event in enumerate(all_events):
        if isinstance(event, Canary):
            after = all_events[index + 1]
            assert isinstance(after, Outcome)
            assert after.cell.case_id == event.case_id


def test_the_canarys_process_gives_the_seconds_of_its_products(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n\n"))
    main()
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [len(times) for times in answers] == [PRODUCTS] * 2
    assert all(seconds > 0 for times in answers for seconds in times)
    assert PRODUCTS > WARM_UP


def test_the_journal_keeps_what_the_canary_took(tmp_path: Path) -> None:
    append(tmp_path / "journal.jsonl", "canary", {"case": "a/b", "round": 2, "seconds": 0.5})
    assert read(tmp_path / "journal.jsonl").canary == (("a/b", 2, 0.5),)


def test_a_pair_of_one_environment_is_compared_last(tmp_path: Path) -> None:
    records = rounds(BASE, [1.0, 1.0]) + rounds(OTHER, [2.0, 2.0]) + rounds(TWIN, [1.0, 1.0])
    comparisons = summarise(dataset.load_dataset(make(tmp_path, records)))
    assert [(comparison.base, comparison.others) for comparison in comparisons] == [
        ("torch-1.0", ("torch-2.x",)),
        ("torch-1.0", ("torch-1.0@twin",)),
    ]


@pytest.mark.parametrize(
    ("apart", "verdict", "code"), [(1.3, "inconclusive", "noise-floor"), (1.01, "slower", "beyond-margin")]
)
def test_no_difference_is_called_that_an_environment_has_from_itself(
    tmp_path: Path, apart: float, verdict: str, code: str
) -> None:
    records = rounds(BASE, [1.0] * 4) + rounds(OTHER, [1.2, 1.2001, 1.2, 1.1999]) + rounds(TWIN, [apart] * 4)
    (row,) = compare([dataset.load_dataset(make(tmp_path, records))], "torch-1.0", ["torch-2.x"]).rows
    assert (row.verdict, row.code) == (verdict, code)
    assert row.ratio == pytest.approx(1.2, rel=1e-3)
    if code == "noise-floor":
        assert row.reason == "torch-1.0 differs from itself by 30 % here, as much as this"
        assert row.more_rounds > 0


@pytest.mark.parametrize(
    ("phase", "precision", "reason"),
    [
        ("train", "fp32", None),
        ("forward", "fp32", "torch-1.0 differs from itself by 30 % here, as much as this"),
        ("train", "tf32", "torch-1.0 differs from itself by 40 % here, as much as this"),
        ("gradient", "fp32", "torch-1.0 differs from itself by 40 % in train tf32 of this case, as much as this"),
    ],
)
def test_the_noise_floor_is_that_of_the_phase_and_precision_else_the_largest_of_the_case(
    tmp_path: Path, phase: str, precision: str, reason: str | None
) -> None:
    places = {("train", "tf32"): 1.4, ("train", "fp32"): 1.01, ("forward", "fp32"): 1.3}
    records = [
        record
        for (name, other), apart in places.items()
        for record in rounds(cell("torch-1.0", phase=name, precision=other), [1.0] * 4)
        + rounds(twin(cell("torch-1.0", phase=name, precision=other)), [apart] * 4)
    ]
    work = {"phase": phase, "precision": precision}
    if (phase, precision) not in places:
        records += rounds(cell("torch-1.0", **work), [1.0] * 4)
    records += rounds(cell("torch-2.x", **work), [1.2, 1.2001, 1.2, 1.1999])
    (row,) = compare([dataset.load_dataset(make(tmp_path, records))], "torch-1.0", ["torch-2.x"]).rows
    if reason is None:
        assert (row.verdict, row.code) == ("slower", "beyond-margin")
    else:
        assert (row.verdict, row.code, row.reason) == ("inconclusive", "noise-floor", reason)


def test_the_noise_floor_of_another_case_is_none(tmp_path: Path) -> None:
    far = cell("torch-1.0", case="4x320-ce-long")
    records = rounds(far, [1.0] * 4) + rounds(twin(far), [1.5] * 4)
    records += rounds(BASE, [1.0] * 4) + rounds(OTHER, [1.2, 1.2001, 1.2, 1.1999])
    (row,) = compare([dataset.load_dataset(make(tmp_path, records))], "torch-1.0", ["torch-2.x"]).rows
    assert row.verdict == "slower"


def test_an_environment_far_from_itself_and_a_drifting_machine_are_doubts(tmp_path: Path) -> None:
    run = make(tmp_path, rounds(BASE, [1.0] * 4) + rounds(TWIN, [1.1, 1.101, 1.1, 1.099]))
    for number in range(12):
        seconds = 1.0 + 0.03 * number
        append(run.path / "journal.jsonl", "canary", {"case": "a/b", "round": number // 4 + 1, "seconds": seconds})
    issues = {issue.code: issue for issue in quality_issues(dataset.load_dataset(run))}
    assert issues["a-a-differs"].sentence.startswith("torch-1.0 differs from itself on another server by 10 %")
    assert issues["a-a-differs"].serious
    assert issues["a-a-differs"].cell == BASE.id
    drift = issues["host-drift"]
    assert (drift.serious, round(drift.extent, 2)) == (False, 0.26)
    assert drift.sentence.startswith("a fixed product became 26 % slower")


def test_a_pair_that_differs_by_chance_is_not_reported_among_many() -> None:
    pair = AAPair(TWIN, 1.05, 0.009)
    others = [AAPair(TWIN, 1.03, 0.5)] * 14
    assert different_pairs([pair]) == [pair]
    assert different_pairs([pair, *others]) == []
    assert different_pairs([AAPair(TWIN, 1.05, 0.0001), *others]) == [AAPair(TWIN, 1.05, 0.0001)]
    assert different_pairs([AAPair(TWIN, 1.01, 0.0001)]) == []
    assert different_pairs([]) == []


def test_times_of_the_canary_that_scatter_are_no_drift() -> None:
    draw = random.Random(3)
    scattered = [("a/b", index // 16 + 1, draw.gauss(1.0, 0.03)) for index in range(48)]
    assert canary_drift(scattered) is None
    rising = [(case, number, seconds * (1 + index / 400)) for index, (case, number, seconds) in enumerate(scattered)]
    falling = [(case, number, 1 / seconds) for case, number, seconds in rising]
    assert canary_drift(rising) == pytest.approx(0.09, abs=0.03)
    assert canary_drift(falling) == pytest.approx(-0.09, abs=0.03)


def test_rounds_on_the_same_servers_count_once_in_an_a_a_pair(tmp_path: Path) -> None:
    def on(server: str, of: Cell, medians: list[float]) -> list[Record]:
        return [replace(record, facts={**record.facts, "server": server}) for record in rounds(of, medians)]

    same_servers = on("one", BASE, [1.0] * 4) + on("two", TWIN, [1.1, 1.101, 1.1, 1.099])
    (pair,) = aa_pairs(dataset.load_dataset(make(tmp_path, same_servers)).rounds)
    assert (round(pair.ratio, 3), pair.p_value) == (1.1, 1.0)


def test_a_quiet_machine_has_neither(tmp_path: Path) -> None:
    run = make(tmp_path, rounds(BASE, [1.0, 1.01, 0.99]) + rounds(TWIN, [1.01, 1.0, 1.0]))
    append(run.path / "journal.jsonl", "canary", {"case": "a/b", "round": 1, "seconds": 1.0})
    assert not {"a-a-differs", "host-drift"} & {issue.code for issue in quality_issues(dataset.load_dataset(run))}
    assert canary_drift([("a/b", 1, 1.0)]) is None
    (pair,) = aa_pairs(dataset.load_dataset(run).rounds)
    assert math.log(pair.ratio) == pytest.approx((math.log(1.01) - math.log(1.01) - math.log(0.99)) / 3)
