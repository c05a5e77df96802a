"""A side of a certain run: its times under its own name, a ratio with other runs, and never a verdict."""

from pathlib import Path

import pytest

from runner.analysis import dataset
from runner.analysis.of_run import of_run, split
from runner.core.errors import UsageError
from runner.session.results import comparison
from tests.support.fake_runs import cell, good, make


def reports_with(folder: Path, *seconds: float) -> list[str]:
    """Store a run for each time of torch-2.x, with torch-1.0 at 1 s in each; return the ids, oldest first."""
    names = []
    for index, newer in enumerate(seconds):
        records = [
            good(cell(name), number, [time, time])
            for name, time in (("torch-1.0", 1.0), ("torch-2.x", newer))
            for number in range(3)
        ]
        run = make(folder, records)
        names.append(f"2026112{index}-104500-aaaa")
        run.path.rename(run.path.parent / names[-1])
    return names


@pytest.mark.parametrize("run", ["20261120-104500-ab12", "twin"])
def test_a_control_is_no_run(run: str) -> None:
    assert split(f"torch-2.x@{run}") == (("torch-2.x", run) if run != "twin" else ("torch-2.x@twin", ""))


@pytest.mark.parametrize("name", ["jax@env:A=1", "jax@threads:4", "jax@env:A=1@threads:4", "jax@plain"])
def test_a_variant_is_no_run_and_may_be_of_one(name: str) -> None:
    assert split(name) == (name, "")
    assert split(f"{name}@20261120-104500-ab12") == (name, "20261120-104500-ab12")


def test_a_side_has_only_its_environment_under_its_own_name(tmp_path: Path) -> None:
    (name,) = reports_with(tmp_path, 0.5)
    results = of_run(dataset.load_dataset(tmp_path / "runs" / name), ["torch-2.x"])
    assert set(results.rounds["environment"]) == {f"torch-2.x@{name}"}
    assert set(results.samples["cell"]) == {f"torch-2.x@{name}/nn-lstm/asr-lstm/1x320-ce-short/train/fp32"}


def test_two_runs_of_an_environment_have_a_ratio_and_no_verdict(tmp_path: Path) -> None:
    old, new = reports_with(tmp_path, 0.5, 0.25)
    names = [f"torch-2.x@{old}", f"torch-2.x@{new}"]
    (row,) = comparison(Path("nowhere.yaml"), tmp_path, names, best=False).rows
    assert row.ratio == pytest.approx(0.5)
    assert (row.verdict, row.code, row.runs) == ("inconclusive", "different-runs", (old, new))


def test_a_run_can_be_chosen(tmp_path: Path) -> None:
    old, new = reports_with(tmp_path, 0.5, 0.25)
    for run, ratio in ((old, 0.5), (new, 0.25), (None, 0.25)):
        compared = comparison(Path("nowhere.yaml"), tmp_path, ["torch-1.0", "torch-2.x"], best=False, run=run)
        assert compared.rows[0].ratio == pytest.approx(ratio)
        assert compared.rows[0].runs == (run or new,)


def test_a_run_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    reports_with(tmp_path, 0.5)
    with pytest.raises(UsageError, match="there is no run 'nowhere'"):
        comparison(Path("nowhere.yaml"), tmp_path, ["torch-1.0", "torch-2.x@nowhere"], best=False)
