"""Run folders as tables, exactly."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import runner
from runner.analysis import dataset
from runner.core.errors import DamagedRunWarning, RecordError, UsageError
from runner.store.run import Run
from runner.store.samples import COLUMNS
from tests.support.fake_runs import bad, cell, good, make


@pytest.fixture
def run(tmp_path: Path) -> Run:
    other = cell("tf-1.15", "lstm-block-fused-cell", phase="forward")
    records = [good(cell(), 0, [0.3, 0.1, 0.2]), bad(other, 0, "oom", "too much"), good(other, 1, [0.5, 0.7])]
    return make(tmp_path, records)


def test_samples_have_the_promised_columns_and_a_row_for_each_iteration_in_order(run: Run) -> None:
    samples = dataset.load_dataset(run).samples
    assert list(samples.columns) == list(COLUMNS)
    assert samples["seconds"].tolist() == [0.3, 0.1, 0.2, 0.5, 0.7]
    assert samples["iteration"].tolist() == [0, 1, 2, 0, 1]
    assert samples["round"].tolist() == [0, 0, 0, 1, 1]
    assert samples["lead"].isna().all()
    assert samples.drop(columns="lead").iloc[0].to_dict() == {
        "run": run.id,
        "cell": cell().id,
        "environment": "torch-2.x",
        "framework": "torch",
        "release": "2.x",
        "implementation": "nn-lstm",
        "workload": "asr-lstm",
        "case": "1x320-ce-short",
        "phase": "train",
        "precision": "fp32",
        "backend": "venv",
        "device": "cpu",
        "round": 0,
        "iteration": 0,
        "seconds": 0.3,
        "turn": 0,
        "turns_with": "",
        "disturbed": False,
    }


def test_rounds_have_the_median_and_the_facts_of_each_good_record(run: Run) -> None:
    rounds = dataset.load_dataset(run).rounds
    assert rounds["seconds"].tolist() == [0.2, 0.6]
    assert rounds["iterations"].tolist() == [3, 2]
    assert rounds["server"].tolist() == ["torch-2.x#1", "tf-1.15#2"]
    assert rounds["threads"].tolist() == ["2", "2"]
    assert rounds["device_name"].tolist() == ["AMD EPYC 7B13"] * 2
    assert rounds["loss_error"].tolist() == [1.5e-7] * 2


def test_medians_are_those_of_numpy(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    times = [draw.uniform(1, 2, count).tolist() for count in (1, 2, 3, 10, 31)]
    run = make(tmp_path, [good(cell(), number, seconds) for number, seconds in enumerate(times)])
    assert dataset.load_dataset(run).rounds["seconds"].tolist() == pytest.approx(
        [np.median(seconds) for seconds in times], rel=1e-15
    )


def test_failures_say_why(run: Run) -> None:
    failures = dataset.load_dataset(run).failures
    assert failures[["environment", "round", "failure", "reason"]].to_numpy().tolist() == [
        ["tf-1.15", 0, "oom", "too much"]
    ]


def test_a_release_that_no_record_has_is_what_the_environment_or_the_framework_says(tmp_path: Path) -> None:
    records = [good(cell(), 0, [1.0], release=None, version="2.13.0"), good(cell("tf-2.x"), 0, [1.0], release=None)]
    run = make(tmp_path, records)
    assert dataset.load_dataset(run).rounds["release"].tolist() == ["2.x", "2.x"]
    run.write_environments({})
    assert dataset.load_dataset(run).rounds["release"].tolist() == ["2.13.0", ""]


@pytest.mark.parametrize("table", ["samples", "rounds", "failures"])
def test_nothing_is_an_empty_table_with_all_its_columns(tmp_path: Path, run: Run, table: str) -> None:
    empty, full = (getattr(dataset.load_dataset(run_), table) for run_ in (make(tmp_path, [], later=1), run))
    assert list(empty.columns) == list(full.columns)
    assert (len(empty), len(full) > 0) == (0, True)


def test_words_are_categories_in_order_and_other_facts_are_text(tmp_path: Path) -> None:
    corpus = {"name": "b.txt", "digest": "sha256:1"}
    records = [
        good(cell(), 1, [1.0], threads=2, corpus=corpus),
        good(cell("tf-2.x"), 1, [1.0], threads=None, corpus="x"),
    ]
    rounds_table = dataset.load_dataset(make(tmp_path, records)).rounds
    assert rounds_table["environment"].cat.categories.tolist() == ["tf-2.x", "torch-2.x"]
    assert rounds_table["environment"].tolist() == ["torch-2.x", "tf-2.x"]
    assert rounds_table["threads"].tolist() == ["2", ""]
    assert rounds_table["corpus"].tolist() == ['{"digest": "sha256:1", "name": "b.txt"}', "x"]


@pytest.mark.parametrize("name", ["samples.parquet", "samples.csv"])
def test_what_is_exported_is_loaded_the_same(run: Run, tmp_path: Path, name: str) -> None:
    dataset.export(run, tmp_path / name)
    pd.testing.assert_frame_equal(dataset.load_samples(tmp_path / name), dataset.load_dataset(run).samples)


def test_a_folder_a_reports_folder_and_the_public_function_load_the_same(run: Run, tmp_path: Path) -> None:
    for source in (run.path, tmp_path, str(tmp_path)):
        pd.testing.assert_frame_equal(runner.load_samples(source), dataset.load_dataset(run).samples)
    newest = make(tmp_path, [good(cell(), 0, [9.0])], later=1)
    assert dataset.load_samples(tmp_path)["run"].unique().tolist() == [newest.id]


def test_a_csv_with_commas_and_quotes_in_a_word_is_read_back(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), 0, [1 / 3], device='a "good", fast card')])
    dataset.export(run, tmp_path / "samples.csv")
    assert dataset.load_samples(tmp_path / "samples.csv")[["device", "seconds"]].to_numpy().tolist() == [
        ['a "good", fast card', 1 / 3]
    ]


def test_another_ending_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ends in neither"):
        dataset.export(run, tmp_path / "samples.xlsx")


def test_a_place_without_samples_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="there is no run"):
        dataset.load_samples(tmp_path)
    with pytest.raises(RecordError, match="cannot be read"):
        dataset.load_samples(tmp_path / "missing.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(RecordError, match="lacks the columns run, cell"):
        dataset.load_samples(tmp_path / "other.csv")
    (tmp_path / "other.parquet").write_text("nonsense")
    with pytest.raises(RecordError, match="cannot be read"):
        dataset.load_samples(tmp_path / "other.parquet")


def test_a_cut_off_journal_is_a_warning_of_the_results(run: Run) -> None:
    with (run.path / "journal.jsonl").open("a") as stream:
        stream.write("{")
    with pytest.warns(DamagedRunWarning, match="was cut off"):
        (warning,) = dataset.load_dataset(run).warnings
    assert "was cut off" in warning


def test_a_case_that_the_budget_had_no_time_for_is_skipped_with_the_reason(tmp_path: Path) -> None:
    records = [good(cell(case=name), 0, [0.5]) for name in ("1x320-ce-short", "1x320-ce-long")]
    run = make(tmp_path, records[:1])
    document = run.plan()
    cells = [*document["cells"], {**document["cells"][0], "id": records[1].cell.id}]
    (run.path / "plan.json").write_text(json.dumps({**document, "cells": cells}))
    for record in records:
        run.note("skipped", case=record.cell.case_id, reason="3 rounds would take long")
    planned = dataset.load_dataset(run).plan
    assert [(entry.verdict, entry.code, entry.reason) for entry in planned] == [
        ("run", "", ""),  # it has a record
        ("skip", "over-budget", "3 rounds would take long"),
    ]


@pytest.mark.parametrize("rounds", [{"rounds": 0}, {"rounds": -1}, {"rounds": 0, "max_rounds": 0}])
def test_a_plan_without_rounds_has_one_look(rounds: dict[str, int]) -> None:
    assert dataset._looks(rounds) == (1,)
