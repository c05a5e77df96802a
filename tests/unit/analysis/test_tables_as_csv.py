"""``samples.csv`` holds all that a ratio and its interval are made of: they are computed again with NumPy alone."""

import csv
import io
import math
from pathlib import Path

import numpy as np
import pytest

from runner.analysis import dataset
from runner.analysis.analyse import analyse
from runner.analysis.compare import compare
from runner.core.model import Cell, Record
from runner.report import report
from runner.store import samples
from tests.support.fake_runs import cell, good, make, rounds

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")
T_OF_THREE_ROUNDS = 4.302653
SIZES = (3, 2, 4)


def in_turns(of: Cell, number: int, seconds: list[float], *, leads: bool = True) -> Record:
    """Return a record whose turns have these times."""
    times = [each for each, size in zip(seconds, SIZES, strict=True) for _ in range(size)]
    before = [factor * each for each in seconds for factor in (2, 1.5)] if leads else None
    return good(of, number, times, turns=list(SIZES), turns_with=f"{number}/1", leads=before)


def records() -> list[Record]:
    draw = np.random.default_rng(1)
    made = []
    for number in range(1, 4):
        machine = draw.lognormal(0, 0.3, 3)  # a machine that other programs slow from turn to turn
        made.append(in_turns(BASE, number, machine.tolist()))
        made.append(in_turns(OTHER, number, (1.2 * machine * draw.lognormal(0, 0.01, 3)).tolist()))
    return made


def test_a_row_is_computed_again_from_the_file_alone(tmp_path: Path) -> None:
    run = dataset.load_dataset(make(tmp_path, records()))
    (row,) = compare([run], "torch-1.0", ["torch-2.x"]).rows
    content = report(analyse(run))["samples.csv"]
    assert isinstance(content, bytes)
    lines = list(csv.DictReader(io.StringIO(content.decode())))
    ratios = []
    for number in sorted({line["round"] for line in lines}):
        of_round = [line for line in lines if line["round"] == number]
        assert len({line["turns_with"] for line in of_round}) == 1
        medians = [
            [
                np.median(
                    [float(line["seconds"]) for line in of_round if (line["cell"], line["turn"]) == (of.id, turn)]
                )
                for turn in sorted({line["turn"] for line in of_round}, key=int)
            ]
            for of in (BASE, OTHER)
        ]
        ratios.append(np.median(np.log(np.array(medians[1]) / np.array(medians[0]))))
    half = T_OF_THREE_ROUNDS * np.std(ratios, ddof=1) / math.sqrt(3)
    ends = np.exp([np.mean(ratios), np.mean(ratios) - half, np.mean(ratios) + half])
    assert (row.ratio, row.ratio_low, row.ratio_high) == pytest.approx(ends.tolist(), rel=1e-6)


def test_a_lead_stands_before_the_first_sample_of_its_turn(tmp_path: Path) -> None:
    run = make(tmp_path, [in_turns(BASE, 1, [1.0, 2.0, 3.0]), in_turns(OTHER, 1, [1.0, 2.0, 3.0], leads=False)])
    frame = dataset.load_dataset(run).samples
    assert frame["turn"].tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2] * 2
    leads = frame["lead"].to_numpy()
    assert leads[:9][~np.isnan(leads[:9])].tolist() == [2.0, 4.0, 6.0]
    assert np.flatnonzero(~np.isnan(leads)).tolist() == [0, 3, 5]


def test_samples_without_turns_are_one_turn_of_no_name(tmp_path: Path) -> None:
    frame = dataset.load_dataset(make(tmp_path, rounds(BASE, [1.0]))).samples
    assert (set(frame["turn"]), set(frame["turns_with"])) == ({0}, {""})
    assert frame["lead"].isna().all()


def test_a_file_of_an_older_version_has_no_turns(tmp_path: Path) -> None:
    frame = dataset.load_dataset(make(tmp_path, records())).samples
    for name in ("old.csv", "old.parquet"):
        samples.write(frame.drop(columns=["turn", "turns_with", "lead"]), tmp_path / name)
        read = samples.read(tmp_path / name)
        assert list(read.columns) == list(samples.COLUMNS)
        assert (set(read["turn"]), set(read["turns_with"])) == ({0}, {""})
