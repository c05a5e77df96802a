"""Each doubt is raised where it was planted, and only there."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.analysis import dataset
from runner.analysis.compare import compare
from runner.analysis.model import Dataset, QualityIssue
from runner.analysis.quality import CODES, annotate, quality_issues
from runner.core.facts import HARNESS_FACTS, QUALITY_FACTS
from runner.core.model import Record
from runner.harness import procfs
from tests.support.fake_runs import cell, good, make

QUIET: dict[str, Any] = {"governor": "performance", "load_average": [0.1, 0.1, 0.1], "logical_cores": 8}
OTHER = cell("torch-1.0")


STEADY = {"steady": True, "warmup_seconds": 0.01, "batch": 1}


JUMPS = np.random.default_rng(2).permutation(np.where(np.arange(40) % 3 == 0, 1.3, 1.0))
"""A third of the samples take longer, in no order."""


def bound(warmup: float, batch: int | None = 1) -> dict[str, Any]:
    """Return the facts of a warm-up that ended at its bound."""
    return {"steady": False, "warmup_seconds": warmup, "batch": batch}


def samples(seed: int, count: int = 40, middle: float = 1e-3) -> np.ndarray:
    return np.asarray(middle * np.random.default_rng(seed).lognormal(0.0, 0.01, count))


def quiet(number: int, **facts: Any) -> list[Record]:
    """Return a round without a doubt of two cells that are compared."""
    return [good(of, number, samples(number + 100 * index), **facts) for index, of in enumerate((cell(), OTHER))]


def results(folder: Path, records: Sequence[Record], **machine: Any) -> Dataset:
    run = make(folder, records, **{**QUIET, **machine})
    return dataset.load_dataset(run)


def codes(issues: Sequence[QualityIssue]) -> list[str]:
    return [doubt.code for doubt in issues]


def planted(folder: Path, rounds: Sequence[np.ndarray], facts: Sequence[dict[str, Any]] = ()) -> QualityIssue:
    """Return the one doubt about a run of which one cell has these rounds, and the other is calm."""
    facts_of_rounds = facts or [{}] * len(rounds)
    records = [good(cell(), number, times, **facts_of_rounds[number]) for number, times in enumerate(rounds)]
    records += [quiet(number)[1] for number in range(len(rounds))]
    (issue,) = quality_issues(results(folder, records))
    assert (issue.cell, issue.environment) == (cell().id, "torch-2.x")
    return issue


def test_a_calm_run_has_none(tmp_path: Path) -> None:
    steady = {**STEADY, "throttled": 0, "clock_mhz": [1400, 1405], "swapped_bytes": 0}
    records = [record for number in range(3) for record in quiet(number, **steady)]
    assert quality_issues(results(tmp_path, records)) == ()


def test_a_run_without_records_has_none(tmp_path: Path) -> None:
    assert quality_issues(results(tmp_path, [])) == ()


def test_few_rounds_of_cells_that_are_compared(tmp_path: Path) -> None:
    records = [record for number in range(2) for record in quiet(number)]
    alone = good(cell("tf-1.15", "basic-lstm-cell", case="4x320-ce-long"), 0, samples(1))
    issues = quality_issues(results(tmp_path, [*records, alone]))
    assert [(doubt.code, doubt.serious, doubt.environment) for doubt in issues] == [
        ("few-rounds", True, "torch-1.0"),
        ("few-rounds", True, "torch-2.x"),
    ]
    assert issues[0].sentence.startswith("2 good rounds")


def test_two_modes_are_serious_where_half_of_the_rounds_have_them(tmp_path: Path) -> None:
    jumping = samples(1) * JUMPS
    issue = planted(tmp_path / "a", [jumping, samples(2), samples(3)])
    assert (issue.code, issue.serious) == ("two-modes", False)
    assert issue.sentence == "two clusters, 33 % of the samples 29 % above the rest, in 1 of 3 rounds"
    issue = planted(tmp_path / "b", [jumping, jumping, samples(3)])
    assert (issue.code, issue.serious) == ("two-modes", True)


def test_two_modes_say_nothing_against_a_ratio_that_was_taken_in_turns(tmp_path: Path) -> None:
    jumping = samples(1) * JUMPS
    issue = planted(tmp_path, [jumping] * 3, [{"turns_with": "1/0"}] * 3)
    assert (issue.code, issue.serious) == ("two-modes", False)


def test_rounds_that_fall_in_two_clusters(tmp_path: Path) -> None:
    rounds = [samples(number, middle=1e-3 * (1.04 if number % 2 else 1.0)) for number in range(12)]
    rounds = [times * (1.04 if number % 2 else 1.0) for number, times in enumerate(rounds)]
    issue = planted(tmp_path, rounds)
    assert (issue.code, issue.serious) == ("two-states", True)
    assert issue.sentence.startswith("the rounds fall in two clusters, 50 % of them 8")


def test_a_trend_says_which_way(tmp_path: Path) -> None:
    falling = samples(1) * np.linspace(1.1, 1.0, 40)
    issue = planted(tmp_path, [falling, falling, falling])
    assert (issue.code, issue.serious) == ("trend", True)
    assert issue.sentence.startswith("the samples still fall, by 7")
    assert issue.sentence.endswith("in 3 of 3 rounds")


def test_a_trend_of_cells_that_took_turns_is_minor(tmp_path: Path) -> None:
    falling = samples(1) * np.linspace(1.1, 1.0, 40)
    issue = planted(tmp_path, [falling] * 3, [{"turns_with": "1/0"}] * 3)
    assert (issue.code, issue.serious) == ("trend", False)


def test_cells_that_took_turns_and_did_not_settle_are_a_serious_issue(tmp_path: Path) -> None:
    rising = samples(1) * np.linspace(1.0, 5.0, 40)
    issue = planted(tmp_path, [rising] * 3, [{"turns_with": "1/0"}] * 3)
    assert (issue.code, issue.serious) == ("trend", True)


def test_interference_is_many_slow_samples(tmp_path: Path) -> None:
    disturbed = samples(1)
    disturbed[[3, 17, 29]] *= 1.5
    issue = planted(tmp_path, [disturbed, samples(2), samples(3)])
    assert (issue.code, issue.serious) == ("interference", False)
    assert issue.sentence == "7.5 % of the samples are far slower than the rest, in 1 of 3 rounds"


def test_rounds_that_spread(tmp_path: Path) -> None:
    issue = planted(tmp_path, [samples(number, middle=1e-3 * (1 + 0.1 * number)) for number in range(3)])
    assert (issue.code, issue.serious) == ("spread", False)
    assert issue.sentence == "its rounds differ by 9.3 %, as a standard deviation"


@pytest.mark.parametrize(
    ("facts", "code", "serious", "words"),
    [
        ({"throttled": 4}, "throttled", True, "in 1 of 3 rounds"),
        ({"clock_mhz": [1200, 1400]}, "clock-moved", True, "between 1200 and 1400 MHz"),
        ({"clock_mhz": {"min": 900, "max": 1400, "median": 1390}}, "clock-moved", True, "between 900 and 1400 MHz"),
        ({"clock_mhz": 1500}, "clock-moved", True, "between 1400 and 1500 MHz"),
        ({"clock_mhz": 1500, "cpus": [0]}, "clock-moved", False, "between 1400 and 1500 MHz"),
        ({"clock_mhz": 1500, "cpus": [0], "gpu_affinity": "any: not pinned"}, "clock-moved", True, "and 1500 MHz"),
        ({"swapped_bytes": 12 << 20}, "swapping", True, "12 MiB of the process were in swap, in 1 of 3 rounds"),
    ],
)
def test_facts_that_the_harness_recorded(
    tmp_path: Path,
    facts: dict[str, Any],
    code: str,
    serious: bool,  # noqa: FBT001
    words: str,
) -> None:
    others = [{"clock_mhz": 1400} if code == "clock-moved" else {}] * 2
    issue = planted(tmp_path, [samples(number) for number in range(3)], [facts, *others])
    assert (issue.code, issue.serious) == (code, serious)
    assert words in issue.sentence


@pytest.mark.parametrize("batch", [1, None])
def test_a_warm_up_that_had_room_and_did_not_settle_is_unsteady(tmp_path: Path, batch: int | None) -> None:
    rounds = [samples(number) for number in range(3)]  # 1 ms each: 15 of them take 15 ms
    issue = planted(tmp_path / "a", rounds, [bound(0.016, batch), bound(0.2, batch), STEADY])
    assert (issue.code, issue.serious) == ("unsteady", False)
    assert issue.sentence.endswith(", in 2 of 3 rounds")


def test_one_disturbed_warm_up_of_three_is_no_doubt(tmp_path: Path) -> None:
    records = [good(cell(), number, samples(number), **(bound(0.2) if number == 0 else STEADY)) for number in range(3)]
    assert quality_issues(results(tmp_path, [*records, *(quiet(number)[1] for number in range(3))])) == ()


def test_a_batch_of_calls_takes_as_much_more_room(tmp_path: Path) -> None:
    rounds = [samples(number, middle=1e-5) for number in range(3)]
    assert planted(tmp_path / "a", rounds, [bound(0.016, 100)] * 3).code == "unsteady"
    slow = [good(cell(), number, times, **bound(0.014, 100)) for number, times in enumerate(rounds)]
    assert codes(quality_issues(results(tmp_path / "b", [*slow, *(quiet(number)[1] for number in range(3))]))) == [
        "short-budget"
    ]


def test_steps_too_slow_for_a_look_at_their_warm_up_are_told_once_for_the_run(tmp_path: Path) -> None:
    middles = {"nn-lstm": 0.02, "lstm-cell-basic": 0.1, "lstm-cell-fused": 0.101, "compiled-cell": 1.26}
    records = [
        good(cell("torch-2.x", slug), number, samples(number, 9, middle), **bound(2.3 * middle))
        for slug, middle in middles.items()
        for number in range(3)
    ]
    records += [record for number in range(3) for record in quiet(number, **STEADY)[1:]]
    (issue,) = quality_issues(results(tmp_path, records))
    assert (issue.code, issue.serious, issue.environment, issue.cell) == ("short-budget", False, "", "")
    assert issue.sentence.startswith("4 of 5 tests were too slow")
    assert issue.sentence.endswith("--seconds 38 is enough for all of them, --seconds 3.1 for half of them")


def test_one_step_that_is_too_slow_is_told_with_the_time_it_needs(tmp_path: Path) -> None:
    slow = [good(cell(), number, samples(number, middle=0.1), **bound(0.2)) for number in range(3)]
    (issue,) = quality_issues(results(tmp_path, [*slow, *(quiet(number, **STEADY)[1] for number in range(3))]))
    assert issue.sentence.startswith("1 of 2 tests was too slow")
    assert issue.sentence.endswith("half of the time: --seconds 3.1 is enough for it")


def test_an_older_record_that_does_not_say_how_long_it_warmed_up_is_not_doubted(tmp_path: Path) -> None:
    assert (
        quality_issues(results(tmp_path, [record for number in range(3) for record in quiet(number, steady=False)]))
        == ()
    )


def test_facts_that_say_nothing_raise_nothing(tmp_path: Path) -> None:
    facts = {"steady": None, "throttled": None, "clock_mhz": None, "swapped_bytes": 4096}
    records = [record for number in range(3) for record in quiet(number, **facts)]
    dataset_ = results(tmp_path, records)
    assert quality_issues(dataset_) == ()
    assert quality_issues(replace(dataset_, rounds=dataset_.rounds.drop(columns=[*QUALITY_FACTS]))) == ()
    assert quality_issues(replace(dataset_, rounds=dataset_.rounds.assign(steady=np.nan, swapped_bytes=np.nan))) == ()


@pytest.mark.parametrize(
    ("machine", "code"),
    [
        ({"governor": "powersave"}, "governor"),
        ({"load_average": [1.5, 0, 0]}, "load"),
        ({"load_average": [7.0, 0, 0], "logical_cores": 64}, "load"),
        ({"load_average": [5.0, 0, 0], "logical_cores": 64}, None),
        ({"load_average": None, "governor": None}, None),
    ],
)
def test_the_machine_is_doubted_once(tmp_path: Path, machine: dict[str, Any], code: str | None) -> None:
    issues = quality_issues(results(tmp_path, [record for number in range(3) for record in quiet(number)], **machine))
    assert [(issue.code, issue.serious, issue.environment, issue.cell) for issue in issues] == [
        (code, False, "", "")
    ] * bool(code)


@pytest.mark.parametrize(("clocks", "expected"), [("none", ["unpinned"]), ("left", ["unpinned"]), ("locked", [])])
def test_clocks_that_were_not_held(tmp_path: Path, clocks: str, expected: list[str]) -> None:
    records = [record for number in range(3) for record in quiet(number, clocks=clocks, device="H200")]
    assert codes(quality_issues(results(tmp_path, records))) == expected


def test_the_serious_come_first_and_of_each_code_the_worst(tmp_path: Path) -> None:
    records = [
        good(cell(), number, samples(number, middle=1e-3 * (1 + 0.3 * number)), throttled=1) for number in (0, 1, 2)
    ]
    records += [good(OTHER, number, samples(number, middle=1e-3 * (1 + 0.1 * number))) for number in (0, 1, 2)]
    issues = quality_issues(results(tmp_path, records, governor="powersave"))
    assert [(doubt.code, doubt.environment) for doubt in issues] == [
        ("throttled", "torch-2.x"),
        ("spread", "torch-2.x"),
        ("spread", "torch-1.0"),
        ("governor", ""),
    ]


@pytest.mark.parametrize(("bound", "rounds"), [(3, "in 3 of 3 rounds"), (2, "in 2 of 3 rounds"), (1, ""), (0, "")])
def test_a_cell_that_the_host_limits_has_a_minor_issue(bound: int, rounds: str, tmp_path: Path) -> None:
    records = [good(cell(), number, samples(number), host_bound=number < bound) for number in range(3)]
    issues = [issue for issue in quality_issues(results(tmp_path, records)) if issue.code == "host-bound"]
    assert [issue.serious for issue in issues] == ([False] if rounds else [])
    assert all(issue.sentence.endswith(rounds) for issue in issues)


def test_the_rows_of_a_comparison_have_the_doubts_about_both_of_their_cells(tmp_path: Path) -> None:
    records = [good(cell(), number, samples(number, middle=1e-3 * (1 + 0.3 * number))) for number in range(3)]
    records += [good(OTHER, number, samples(number + 9), throttled=1) for number in range(3)]
    dataset_ = results(tmp_path, records)
    plain = compare([dataset_], "torch-1.0", ["torch-2.x"])
    (row,) = annotate(plain, {dataset_.run: quality_issues(dataset_)}).rows
    assert [(doubt.code, doubt.cell) for doubt in row.quality_issues] == [
        ("throttled", OTHER.id),
        ("spread", cell().id),
    ]
    assert annotate(plain, {"another": quality_issues(dataset_)}) == plain == annotate(plain, {dataset_.run: ()})


def test_sides_of_different_runs_have_the_doubts_of_their_own_run(tmp_path: Path) -> None:
    older = make(tmp_path, [good(OTHER, number, samples(number), throttled=1) for number in range(3)], **QUIET)
    two = make(tmp_path, [good(cell(), number, samples(number)) for number in range(3)], later=5, **QUIET)
    both = [dataset.load_dataset(two), dataset.load_dataset(older)]
    known = {run.run: quality_issues(run) for run in both}
    (row,) = annotate(compare(both, "torch-1.0", ["torch-2.x"]), known).rows
    assert [(doubt.code, doubt.environment) for doubt in row.quality_issues] == [("throttled", "torch-1.0")]
    swapped = {two.id: known[older.id], older.id: known[two.id]}
    assert annotate(compare(both, "torch-1.0", ["torch-2.x"]), swapped).rows[0].quality_issues == ()


def test_the_harness_says_what_of_a_child_is_in_swap_and_the_record_keeps_it() -> None:
    assert procfs.swapped_bytes() >= 0
    assert "swapped_bytes" in HARNESS_FACTS


@pytest.mark.parametrize(
    ("cpus", "busy", "serious"),
    [
        (2, 0.3, None),
        (2, 0.31, False),
        (2, 0.5, False),
        (2, 0.51, True),
        (16, 1.6, None),
        (16, 3.2, False),
        (16, 3.3, True),
    ],
)
def test_other_programs_keep_the_cpus_busy(cpus: int, busy: float, serious: object, tmp_path: Path) -> None:
    loads = (0.0, busy, 2 * busy)  # the median over the rounds counts
    records = [record for number, load in enumerate(loads) for record in quiet(number, others_busy=load)]
    issues = quality_issues(results(tmp_path, records, online_cpus=cpus))
    assert [(issue.code, issue.serious) for issue in issues] == ([] if serious is None else [("busy", serious)])
    for issue in issues:
        expected = f"other programs kept {busy:.1f} of {cpus} CPUs busy while the median test was measured"
        assert (issue.sentence, issue.cell, issue.environment) == (expected, "", "")


def test_devices_side_by_side_are_other_programs_to_each_other(tmp_path: Path) -> None:
    records = [record for number in range(3) for record in quiet(number, others_busy=3.0)]
    assert quality_issues(results(tmp_path, records, gpus=[{"uuid": "a"}, {"uuid": "b"}])) == ()


def test_every_code_is_explained() -> None:
    page = (Path(__file__).parents[3] / "docs" / "doubts.md").read_text("utf-8")
    for code in CODES:
        assert f"\n### `{code}`" in page


def test_variables_that_are_set_too_late_are_named_with_the_key_to_use(tmp_path: Path) -> None:
    facts = [{}, {"set_too_late": ["XLA_FLAGS"]}, {"set_too_late": ["OMP_WAIT_POLICY", "XLA_FLAGS"]}]
    issue = planted(tmp_path, [samples(number) for number in range(3)], facts)
    assert (issue.code, issue.serious) == ("set-too-late", True)
    assert issue.sentence == (
        "the model file sets OMP_WAIT_POLICY and XLA_FLAGS after the framework is imported, which may have no effect: "
        'write env: {OMP_WAIT_POLICY: "...", XLA_FLAGS: "..."} in the environment torch-2.x, '
        "or add --env OMP_WAIT_POLICY=... --env XLA_FLAGS=..."
    )


def test_what_a_server_has_seen_of_a_network_is_a_doubt(tmp_path: Path) -> None:
    facts = [{}, {"conduct": ["it left", "it computed"]}, {"conduct": ["it left"]}]
    issue = planted(tmp_path, [samples(number) for number in range(3)], facts)
    assert (issue.code, issue.serious, issue.sentence) == ("conduct", True, "it left; it computed")
