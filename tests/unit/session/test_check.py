"""How a run is judged, for people and programs, and which command comes next."""

import fcntl
import json
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from runner import cli
from runner.analysis.compare.forecasts import fresh_rounds
from runner.backends import harness_archive
from runner.core.files import write_whole
from runner.core.model import Cell, Record
from runner.core.model.cells import plain, twin
from runner.report.check import Check
from runner.session.check import check
from runner.session.suggest import selectors
from runner.stats.intervals import MARGIN
from runner.store.documents import PLAN, text
from runner.store.run import LOCK, Run
from tests.support.fake_runs import bad, cell, good, make

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")
NO_MATRIX = Path("nowhere.yaml")
QUIET_MACHINE: dict[str, Any] = {"governor": "performance", "load_average": [0.1, 0.1, 0.1], "logical_cores": 8}


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.gpu.detect.gpus", lambda: ())


def samples(seed: int, middle: float = 1e-3) -> list[float]:
    return [float(value) for value in middle * np.random.default_rng(seed).lognormal(0.0, 0.01, 30)]


def pairs(ratios: Iterable[float], **facts: Any) -> list[Record]:
    """Return rounds of two cells, of which the other takes that many times as long as the base."""
    records = []
    for number, ratio in enumerate(ratios):
        records += [
            good(BASE, number, samples(number)),
            good(OTHER, number, samples(number + 50, 1e-3 * ratio), **facts),
        ]
    return records


def stored(folder: Path, records: Sequence[Record], ended: str = "done", **plan: Any) -> Run:
    """Return a run that ended; ``plan`` is added to its plan.json."""
    run = make(folder, records, **QUIET_MACHINE)
    document = {**run.plan(), "device": "cpu", "backend": "docker", "rounds": 3, "seconds": 0.5, "threads": 2, **plan}
    write_whole(run.path / PLAN, text(document))
    matrix = str(Path("matrix.yaml").absolute())
    run.note("begun", harness=harness_archive.version(), matrix=matrix, python="/usr/bin/python3")
    if ended:
        run.note("ended", how=ended)
    return run


def judged(folder: Path, records: Sequence[Record], ended: str = "done", **plan: Any) -> Check:
    return check(folder, stored(folder, records, ended, **plan).id, NO_MATRIX)


def command(result: Check) -> list[str]:
    """Return the words of the next command, without where the runs are."""
    words = shlex.split(result.command)
    if "--reports" in words:
        index = words.index("--reports")
        del words[index : index + 2]
    return words


DECIDED = (0.8, 0.801, 0.799, 0.8, 0.8)
OPEN = (1.04, 1.10, 1.02, 1.08, 1.05)
AT_THE_MARGIN = (0.96, 1.0, 0.97, 1.01, 0.99)


def test_a_terminal_shows_the_grade_in_its_colour(tmp_path: Path) -> None:
    result = judged(tmp_path, pairs(DECIDED))
    assert "\x1b[1;33mtrust: fair" in result.text(colour=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", result.text(colour=True)) == result.text()


def test_a_run_without_doubts_is_compared(tmp_path: Path) -> None:
    result = judged(tmp_path, pairs(DECIDED))
    assert (result.state, result.quality_issues, result.failures, result.serious) == ("finished", (), (), False)
    assert command(result) == ["runner", "compare", "torch-1.0", "torch-2.x"]
    assert result.text().splitlines() == [
        f"run {result.run} of 2026-11-20 10:45 UTC, finished",
        "AMD EPYC 7B13, backend docker, 2 threads, 3 rounds of 0.5 s for each test",
        "10 good records, 2 environments",
        "",
        "trust: fair: large differences hold; look twice at small ones",
        "  fair  no A/A control shows how far an environment differs from itself",
        "",
        "no warnings",
        "",
        "comparisons: 1 faster",
        "",
        f"next: runner compare torch-1.0 torch-2.x --reports {tmp_path}",
    ]


def test_a_run_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    result = judged(tmp_path, pairs(DECIDED[:2]), ended="")
    assert (result.state, result.serious) == ("unfinished", True)
    assert command(result) == ["runner", "run", "--resume", result.run]
    assert "4 good records of 6 planned, 2 environments" in result.text()
    assert "put 1 verdict into question" in result.text()


def test_a_run_of_other_code_cannot_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stored(tmp_path, pairs(DECIDED), "interrupted")
    monkeypatch.setattr(harness_archive, "version", lambda: "another")
    result = check(tmp_path, run.id, NO_MATRIX)
    (note,) = result.notes
    assert "cannot be resumed" in note
    assert command(result) == ["runner", "run", BASE.id, OTHER.id, "--rounds", "3", "--seconds", "0.5"]


def test_a_run_at_work_is_left_alone(tmp_path: Path) -> None:
    run = stored(tmp_path, pairs(DECIDED[:1]), "")
    with (run.path / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = check(tmp_path, run.id, NO_MATRIX)
    assert result.state == "at work"
    assert command(result) == ["runner", "check", run.id]
    assert check(tmp_path, run.id, NO_MATRIX).state == "unfinished"


def test_open_verdicts_get_the_rounds_that_decide_them(tmp_path: Path) -> None:
    result = judged(tmp_path, pairs(OPEN))
    ((_, row),) = result.open
    assert row.more_rounds > 0
    assert not result.serious
    (rounds,) = fresh_rounds([row], 1, MARGIN)
    assert 5 < rounds <= 30
    assert command(result) == ["runner", "run", BASE.id, OTHER.id, "--rounds", str(rounds), "--seconds", "0.5"]
    assert result.advice == ""
    what = "torch-2.x against torch-1.0, nn-lstm asr-lstm/1x320-ce-short train"
    assert f"\n  open  {what}: {row.reason}\n" in result.text(400)


def test_what_no_new_run_decides_gets_advice_in_place_of_a_command(tmp_path: Path) -> None:
    result = judged(tmp_path, pairs(AT_THE_MARGIN))
    assert [row.verdict for _, row in result.open] == ["inconclusive"]
    advice = (
        "no run of up to 30 rounds would decide the open comparisons; longer rounds (--seconds 2) or a quieter machine "
        "(runner tune) would help"
    )
    assert (result.command, result.advice) == ("", advice)
    assert result.text(400).splitlines()[-1] == f"next: {advice}"
    document = result.json()
    assert (document["next"], document["advice"]) == (None, advice)


def test_a_new_run_leaves_out_what_it_would_not_decide(tmp_path: Path) -> None:
    base, other = cell("torch-1.0", case="other"), cell("torch-2.x", case="other")
    records = []
    for number, ratio in enumerate(AT_THE_MARGIN):
        records += [good(base, number, samples(number)), good(other, number, samples(number + 50, 1e-3 * ratio))]
    result = judged(tmp_path, [*pairs(OPEN), *records])
    assert len(result.open) == 2
    assert BASE.id in command(result)
    assert base.id not in command(result)
    assert result.advice.startswith("1 of the 2 open comparisons would stay open in a run of up to 30 rounds; ")
    assert f"note: {result.advice}" in result.text(400).splitlines()


def test_a_new_run_of_more_rows_gets_more_rounds(tmp_path: Path) -> None:
    ((_, row),) = judged(tmp_path, pairs(OPEN)).open
    (alone,), (among,) = fresh_rounds([row], 1, MARGIN), fresh_rounds([row], 20, MARGIN)
    assert alone < among
    no_noise = replace(row, round_sd=None, rounds=1, more_rounds=2)
    at_the_floor = replace(row, code="noise-floor", more_rounds=3)
    assert fresh_rounds([no_noise, row, at_the_floor], 1, MARGIN) == [3, alone, row.rounds + 3]


def test_an_a_a_pair_is_no_open_comparison(tmp_path: Path) -> None:
    copies = [good(twin(BASE), number, samples(number, 1e-3 * ratio)) for number, ratio in enumerate(OPEN)]
    result = judged(tmp_path, [*pairs(OPEN), *copies])
    assert [(comparison.base, comparison.others) for comparison in result.comparisons] == [
        (BASE.environment, (OTHER.environment,))
    ]
    assert {row.environment for _, row in result.open} == {OTHER.environment}
    assert "@twin" not in result.command


def test_few_rounds_get_more(tmp_path: Path) -> None:
    result = judged(tmp_path, pairs(DECIDED[:2]))
    assert {doubt.code for doubt in result.quality_issues} == {"few-rounds"}
    assert command(result) == ["runner", "run", BASE.id, OTHER.id, "--rounds", "5", "--seconds", "0.5"]


def test_a_trend_gets_more_time_on_both_sides(tmp_path: Path) -> None:
    falling = [good(OTHER, number, np.linspace(1.3e-3, 1e-3, 30).tolist()) for number in range(3)]
    result = judged(tmp_path, [*[good(BASE, number, samples(number)) for number in range(3)], *falling])
    assert result.serious
    assert command(result) == ["runner", "run", BASE.id, OTHER.id, "--rounds", "3", "--seconds", "2"]


def test_a_trend_of_a_cell_without_a_partner_comes_after_open_verdicts(tmp_path: Path) -> None:
    alone = cell("torch-2.x", "nn-rnn", workload="deepbench-rnn", case="device-002-vanilla-h64-b1-t96", phase="forward")
    falling = [good(alone, number, np.linspace(1.3e-3, 1e-3, 30).tolist()) for number in range(3)]
    result = judged(tmp_path, [*pairs(DECIDED[:2]), *falling])
    assert {issue.cell for issue in result.quality_issues if issue.code == "trend"} == {alone.id}
    assert command(result)[:4] == ["runner", "run", BASE.id, OTHER.id]


def test_a_command_that_takes_hours_says_so(tmp_path: Path) -> None:
    run = stored(tmp_path, pairs(DECIDED[:2]))
    document = run.plan()
    for entry in document["cells"]:
        entry["seconds"] = 3000.0
    write_whole(run.path / PLAN, text(document))
    words = command(check(tmp_path, run.id, NO_MATRIX))
    assert "--all" in words
    assert "--all" not in command(judged(tmp_path / "short", pairs(DECIDED[:2])))


def test_a_noisy_machine_is_looked_at_first(tmp_path: Path) -> None:
    result = judged(tmp_path, pairs(OPEN, swapped_bytes=1 << 30))
    assert command(result) == ["runner", "tune"]


def test_a_run_in_which_nothing_was_measured_sends_to_the_doctor(tmp_path: Path) -> None:
    result = judged(tmp_path, [bad(BASE, 1, "image-build", "no wheel"), bad(BASE, 2, "image-build", "no wheel")])
    assert command(result) == ["runner", "doctor"]
    assert [failure.reason for failure in result.failures] == ["no wheel"]
    assert "1 test failed" in result.text()


@pytest.mark.parametrize("noise", [{}, {"swapped_bytes": 1 << 30}])
def test_a_wrong_result_is_looked_at_first_and_its_case_is_measured_again(
    tmp_path: Path, noise: dict[str, Any]
) -> None:
    another = cell("torch-2.x", case="1x320-ce-long")
    records = [*(good(BASE, number, samples(number), **noise) for number in range(3)), good(another, 0, samples(9))]
    result = judged(tmp_path, [*records, bad(OTHER, 1, "wrong-result", "step 2 differs")])
    assert command(result) == ["runner", "accuracy", result.run]
    assert result.advice.startswith("1 test computed something else than the reference, and the next command shows ")
    again = f"; once this is fixed, measure again: runner run {BASE.id} {OTHER.id} --reports {tmp_path} "
    assert again in result.advice
    assert result.text().endswith(f"next: runner accuracy {result.run} --reports {tmp_path}")


def test_without_a_good_record_a_wrong_result_is_still_shown(tmp_path: Path) -> None:
    result = judged(tmp_path, [bad(BASE, 1, "wrong-result", "step 2 differs")])
    assert command(result) == ["runner", "accuracy", result.run]


@pytest.mark.parametrize("ended", ["", "done"])
def test_a_run_on_several_hosts_continues_and_is_measured_again_on_them(tmp_path: Path, ended: str) -> None:
    run = stored(tmp_path, pairs(DECIDED[:2]), ended="")
    matrix = str(Path("matrix.yaml").absolute())
    run.note("begun", harness=harness_archive.version(), matrix=matrix, executor="dask://head:8786")
    if ended:
        run.note("ended", how=ended)
    words = command(check(tmp_path, run.id, NO_MATRIX))
    assert words[-2:] == ["--executor", "dask://head:8786"]
    assert ("--resume" in words) == (ended == "")


def test_one_environment_has_nothing_to_compare_with(tmp_path: Path) -> None:
    result = judged(tmp_path, [good(BASE, number, samples(number)) for number in range(3)])
    assert command(result) == ["runner", "report", result.run]


@pytest.mark.parametrize(
    ("plan", "words"), [({"backend": "venv"}, ["--backend", "venv"]), ({"device": "cuda"}, ["--device", "cuda"])]
)
def test_cells_are_measured_again_with_the_same_backend_and_device(
    tmp_path: Path, plan: dict[str, str], words: list[str]
) -> None:
    suggested = command(judged(tmp_path, pairs(DECIDED[:2]), **plan))
    assert " ".join(words) in " ".join(suggested)
    assert {BASE.id, OTHER.id} <= set(suggested)


def test_the_interpreter_of_the_host_backend_is_named_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control = replace(BASE, environment=f"{BASE.environment}@twin")
    run = stored(tmp_path, [good(BASE, 0, samples(0)), good(control, 0, samples(0))], "interrupted", backend="host")
    monkeypatch.setattr(harness_archive, "version", lambda: "another")  # it cannot be resumed
    suggested = command(check(tmp_path, run.id, NO_MATRIX))
    assert suggested[:3] == ["runner", "run", BASE.id]
    assert "--backend host --python /usr/bin/python3 --name torch-1.0" in " ".join(suggested)


def test_another_matrix_and_the_published_protocol_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stored(
        tmp_path, [good(cell(name, phase="train+published"), 1, samples(1)) for name in ("torch-1.0", "torch-2.x")]
    )
    monkeypatch.chdir(tmp_path)
    suggested = command(check(tmp_path, run.id, NO_MATRIX))
    assert suggested[suggested.index("--matrix") + 1].endswith("/matrix.yaml")
    assert suggested[suggested.index("--protocol") + 1] == "published"


def test_the_model_files_of_networks_are_named_again(tmp_path: Path) -> None:
    run = stored(tmp_path, pairs(DECIDED[:2]), ended="")
    words = ["torch-1.0", "--model", "nets/one.py", "--seed", "1", "--model", "two.py"]
    matrix = str(Path("matrix.yaml").absolute())
    run.note("begun", harness=harness_archive.version(), matrix=matrix, command=words)
    run.note("ended", how="done")
    suggested = command(check(tmp_path, run.id, NO_MATRIX))
    assert "--model nets/one.py --model two.py" in " ".join(suggested)


def many(environments: int, slugs: int, cases: int) -> list[str]:
    return sorted(
        Cell(environment=f"e-{e}", implementation=f"i-{i}", workload="w", case=f"c-{c}", phase="train").id
        for e in range(environments)
        for i in range(slugs)
        for c in range(cases)
    )


def test_selectors_are_few_and_take_in_all() -> None:
    assert selectors(many(2, 1, 3)) == tuple(many(2, 1, 3))
    assert selectors(many(2, 9, 1)) == ("e-0/*/w/c-0/*", "e-1/*/w/c-0/*")
    assert selectors(many(9, 1, 1)) == ("*/*/w/c-0/*",)
    assert selectors(many(9, 1, 12)) == tuple(sorted(f"*/*/w/c-{c}/*" for c in range(12)))
    assert selectors(many(9, 1, 13)) == tuple(f"e-{e}" for e in range(9))


def test_failures_are_grouped_by_class_and_reason(tmp_path: Path) -> None:
    broken = [
        cell("tf-1.15", slug, case=case) for slug in ("basic-lstm-cell", "lstm-block-cell") for case in ("a", "b")
    ]
    records = [*pairs(DECIDED), *(bad(broken_cell, 1, "crash", "exit 1") for broken_cell in broken)]
    result = judged(tmp_path, [*records, bad(cell("tf-2.x"), 1, "oom", "too much")])
    assert result.counts.failed == 5
    assert f"oom    {cell('tf-2.x').id}: too much" in result.text()
    assert "crash  4 tests of tf-1.15: exit 1" in result.text()


def test_repeated_doubts_are_counted_and_the_worst_is_shown(tmp_path: Path) -> None:
    slugs = ("nn-lstm", "lstm-cell-basic", "lstm-cell-fused")
    records = [
        good(cell("torch-1.0", slug), number, samples(number, 1e-3 * (1 + 0.1 * (position + 1) * number)))
        for position, slug in enumerate(slugs)
        for number in range(3)
    ]
    result = judged(tmp_path, records)
    assert "minor warnings\n  spread  3 tests of torch-1.0; at worst: its rounds differ by 24 %" in result.text()
    assert len(result.text().splitlines()) < 15


def test_the_command_ends_with_1_for_serious_doubts_and_0_else(tmp_path: Path) -> None:
    for folder, rounds, code in (("a", DECIDED, 0), ("b", OPEN, 0), ("c", DECIDED[:1], 1)):
        run = stored(tmp_path / folder, pairs(rounds))
        arguments = ["check", "--reports", str(tmp_path / folder), "--matrix", str(tmp_path / "none")]
        shown = CliRunner().invoke(cli.app, arguments, standalone_mode=False)
        assert shown.return_value == code
        assert shown.stdout.splitlines()[0].startswith(f"run {run.id} ")
        assert shown.stdout.splitlines()[-1].startswith("next: runner ")


def test_json_says_all_of_it(tmp_path: Path) -> None:
    run = stored(tmp_path, [*pairs(OPEN[:2]), bad(cell("tf-1.15"), 1, "crash", "exit 1")])
    arguments = ["check", run.id, "--reports", str(tmp_path), "--matrix", str(tmp_path / "none"), "--format", "json"]
    document = json.loads(CliRunner().invoke(cli.app, arguments, standalone_mode=False).stdout)
    assert (document["version"], document["run"], document["state"], document["serious"]) == (
        1,
        run.id,
        "finished",
        True,
    )
    assert document["counts"] == {"cells": 3, "skipped": 0, "rounds": 3, "good": 4, "failed": 1, "environments": 2}
    assert [doubt["code"] for doubt in document["doubts"]] == ["few-rounds", "few-rounds"]
    assert document["failures"][0]["class"] == "crash"
    assert document["open"][0]["base"] == "torch-1.0"
    assert document["next"].startswith("runner run ")


def test_a_fact_that_no_record_has_is_none(tmp_path: Path) -> None:
    from runner.analysis import dataset

    run = make(tmp_path, [good(BASE, 0, [1.0], steady=False), good(OTHER, 0, [1.0], clock_mhz=[1, 2])])
    rounds = dataset.load_dataset(run).rounds
    assert rounds["steady"].tolist() == [False, None]
    assert rounds["clock_mhz"].tolist() == [None, [1, 2]]


def with_plain(ratio: float) -> list[Record]:
    """Return decided rounds whose base takes that many times as long in a plain process."""
    records = pairs(DECIDED)
    for number in range(3):
        records += [good(plain(BASE), number, samples(number + 70, 1e-3 * ratio))]
        records += [good(plain(OTHER), number, samples(number + 90, 0.8e-3))]
    return records


def test_cells_that_differ_from_a_plain_process_are_measured_in_plain_processes(tmp_path: Path) -> None:
    result = judged(tmp_path, with_plain(2.7), rounds=5)
    words = command(result)
    assert words[-2:] == ["--process", "plain"]
    assert {BASE.id, OTHER.id} <= set(words)
    assert not any("@plain" in word for word in words)
    assert not result.open
    assert result.comparisons[0].rows[0].in_plain_processes
    assert result.counts.environments == 2
    (of_base, of_other) = result.json()["plain"]
    assert (of_base["cell"], of_base["differs"], of_base["rounds"]) == (BASE.id, True, 3)
    assert of_base["ratio_low"] < 2.7 < of_base["ratio_high"]
    assert not of_other["differs"]


def test_plain_processes_that_agree_change_nothing(tmp_path: Path) -> None:
    result = judged(tmp_path, with_plain(1.0), rounds=5)
    assert command(result)[1] == "compare"
    assert not result.serious
    assert [len(comparison.rows) for comparison in result.comparisons] == [1]
