"""What a run says of its disturbed rounds, and what becomes of their samples."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from runner import load_samples
from runner.analysis.dataset import export, load_dataset
from runner.analysis.disturbed_rounds import DisturbedRounds, disturbed_rounds
from runner.core.model import RoundDisturbed
from runner.session.results import run_answer
from runner.store.run import Run
from tests.support.fake_runs import cell, good, make

LEFT = "other programs disturbed 7 rounds (of one case each), and no undisturbed repeat replaces them"
BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")


def disturbed_run(folder: Path) -> Run:
    """Return a run of three rounds; the second was disturbed and repeated, the third only disturbed."""
    records = [good(of, number, [0.5, 0.5]) for number in (1, 2, 3) for of in (BASE, OTHER)]
    run = make(folder, records)
    for number in (2, 3):
        run.note("disturbed", **RoundDisturbed(BASE.case_id, number, 1, (BASE, OTHER), 2.0).event())
    for of, seconds in ((BASE, 0.25), (OTHER, 0.75)):
        run.add(replace(good(of, 2, [seconds]), attempt=2))
    return run


def test_the_repeat_counts_and_the_disturbed_samples_are_kept_with_a_mark(tmp_path: Path) -> None:
    run = disturbed_run(tmp_path)
    dataset = load_dataset(run)
    assert dataset.rounds["seconds"].tolist() == [0.5, 0.5, 0.25, 0.75, 0.5, 0.5]
    assert not dataset.samples["disturbed"].any()
    for name in ("samples.csv", "samples.parquet"):
        assert export(run, tmp_path / name) == 14
        samples = load_samples(tmp_path / name)
        marked = samples[samples["disturbed"]]
        assert set(marked["round"]) == {2}
        assert marked["seconds"].tolist() == [0.5] * 4
        assert sorted(samples[~samples["disturbed"] & (samples["round"] == 2)]["seconds"]) == [0.25, 0.75]
    pd.testing.assert_frame_equal(load_samples(run.path), load_samples(tmp_path / "samples.parquet"))


def test_samples_of_an_older_program_are_read_as_undisturbed(tmp_path: Path) -> None:
    run = make(tmp_path, [good(BASE, 1, [0.5, 0.25])])
    export(run, tmp_path / "new.csv")
    lines = (tmp_path / "new.csv").read_text().splitlines()
    (tmp_path / "old.csv").write_text("".join(f"{line.rpartition(',')[0]}\n" for line in lines))
    assert load_samples(tmp_path / "old.csv")["disturbed"].tolist() == [False, False]


def test_a_run_counts_what_was_measured_again_and_what_stays_disturbed(tmp_path: Path) -> None:
    assert disturbed_rounds(disturbed_run(tmp_path).journal()) == DisturbedRounds(repeated=1, left=1)
    assert disturbed_rounds(make(tmp_path / "quiet", [good(BASE, 1, [0.5])]).journal()) == DisturbedRounds()


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (DisturbedRounds(), ""),
        (DisturbedRounds(1, 0), "1 round of one case was measured again, because other programs disturbed it"),
        (
            DisturbedRounds(5, 0),
            "5 rounds (of one case each) were measured again, because other programs disturbed them",
        ),
        (DisturbedRounds(0, 1), "other programs disturbed 1 round of one case, and no undisturbed repeat replaces it"),
        (DisturbedRounds(2, 7), f"{LEFT}; 2 rounds (of one case each) were measured again"),
    ],
)
def test_the_sentence_says_what_came_of_disturbed_rounds(counts: DisturbedRounds, sentence: str) -> None:
    assert counts.sentence == sentence


def test_the_answer_of_a_run_says_so(tmp_path: Path) -> None:
    from runner.analysis.analyse import analyse_run
    from runner.report import answer_text
    from runner.report.trust import trust_lines

    answer = run_answer(analyse_run(disturbed_run(tmp_path), 0.02))
    assert answer.disturbed in answer_text.text(answer, width=200, colour=False)
    assert dict(trust_lines(answer, failed=0, cells=2))["Disturbed"] == answer.disturbed
