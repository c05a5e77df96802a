"""What commands conclude from a stored run: they share one analysis of it."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.analysis import dataset
from runner.analysis.analyse import analyse, analyse_run
from runner.analysis.compare import compare
from runner.core.errors import DamagedRunWarning, NothingSelectedError, RunnerError
from runner.session.check import check, review
from runner.session.results import comparison, find_run, run_answer, write_report
from runner.session.run_entry import run_entry
from runner.stats.intervals import MARGIN
from runner.store.run import Run
from tests.support.changed_runs import change_header
from tests.support.fake_runs import cell, make, realistic, rounds


def counting(method: Callable[..., object], calls: Counter[str]) -> Callable[..., object]:
    """Return a method that counts its calls by its name."""

    def counted(*arguments: object) -> object:
        calls[method.__name__] += 1
        return method(*arguments)

    return counted


def test_report_answer_check_and_history_read_a_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = realistic(tmp_path)
    change_header(run, at="2026-11-20T10:44:59Z")
    expected = check(tmp_path, run.id, Path("nowhere.yaml"))
    reads: Counter[str] = Counter()
    for name in ("quick_records", "journal"):
        monkeypatch.setattr(Run, name, counting(getattr(Run, name), reads))
    analysis = analyse_run(run, MARGIN)
    assert write_report(analysis, run).exists()
    assert run_answer(analysis).grade == analysis.grade
    assert review(analysis, run, tmp_path) == expected
    assert run_entry(analysis, run).cells
    assert reads == {"quick_records": 1, "journal": 1}


def test_a_run_of_the_future_is_named_and_not_the_newest(tmp_path: Path) -> None:
    now, future = make(tmp_path, rounds(cell(), [1.0])), make(tmp_path, rounds(cell(), [1.0]), later=5)
    future.path.rename(future.path.with_name("29361120-104500-aaaa"))
    with pytest.warns(DamagedRunWarning, match="run 29361120-104500-aaaa: named after a time in the future"):
        assert find_run(tmp_path, None).id == now.id
    assert find_run(tmp_path, "29361120-104500-aaaa").id == "29361120-104500-aaaa"


def test_an_analysis_concludes_once_and_a_comparison_of_it_is_that_of_its_tables(tmp_path: Path) -> None:
    results = dataset.load_dataset(realistic(tmp_path))
    analysis = analyse(results)
    assert analysis.comparisons is analysis.comparisons
    assert analysis.measured.side("torch-2.x") is analysis.measured.side("torch-2.x")
    sides = ("torch-1.0", ["torch-2.x"])
    assert compare([analysis.measured], *sides) == compare([results], *sides)


def test_an_excluded_side_is_not_compared(tmp_path: Path) -> None:
    make(tmp_path, [each for name in ("torch-1.0", "torch-1.12", "torch-2.x") for each in rounds(cell(name), [1.0])])
    matrix = Path(__file__).parents[3] / "matrix.yaml"

    def sides(*names: str) -> tuple[str, ...]:
        compared = comparison(matrix, tmp_path, names, best=False)
        return compared.base, *compared.others

    assert sides("torch-1.0", "torch-1.*", "!torch-1.13", "torch-2.x") == ("torch-1.0", "torch-1.12", "torch-2.x")
    assert sides("torch>=1.12,<2", "torch-2.x", "!torch==1.13.1") == ("torch-1.12", "torch-2.x")
    with pytest.raises(NothingSelectedError, match="no environment remains of torch-2"):
        sides("torch-2.x", "!torch-2.x")
    with pytest.raises(NothingSelectedError, match="'torch-9' names no environment"):
        sides("torch-2.x", "!torch-9")


def test_releases_and_interpreters_that_no_run_has_measured_are_named_as_they_were_typed(tmp_path: Path) -> None:
    sides = ["numpy==1.26.4", "mine=python:/nowhere/bin/python"]
    with pytest.raises(RunnerError) as caught:
        comparison(Path("matrix.yaml"), tmp_path, sides, best=False)
    assert str(caught.value) == (
        "error: no kept run has measured numpy==1.26.4 and mine=python:/nowhere/bin/python\n"
        "hint: to measure both: `runner run numpy==1.26.4 mine=python:/nowhere/bin/python`"
    )
