"""A damaged run costs a sentence: other runs, later nights, and what is left of the run go on."""

import errno
import json
import warnings
from pathlib import Path

import pytest

from runner.analysis.analyse import analyse_run
from runner.cli import console
from runner.core.errors import DamagedRunWarning, RecordError, RunnerError
from runner.core.progress import Progress
from runner.nights.anchors_file import read_pins, write_pins
from runner.nights.looks import read_history
from runner.session.check import check
from runner.session.execution.failures import recorded_ending
from runner.session.execution.resume import past
from runner.session.listing import listing
from runner.session.results import comparison, find_run, write_report
from runner.store.run import Run
from runner.watch.site import write_site
from tests.support.changed_runs import reseal
from tests.support.fake_runs import cell, make, rounds

NO_MATRIX = Path("no-matrix.yaml")
SIDES = ["torch-1.0", "torch-2.x"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a run of two environments."""
    return make(tmp_path, [*rounds(cell(SIDES[0]), [1.0, 1.1, 1.2]), *rounds(cell(SIDES[1]), [2.0, 2.1, 2.2])])


def damage_records(run: Run) -> None:
    """Change each record of the first environment."""
    for path in (run.path / "records").glob("torch-1.0~*"):
        path.write_text(path.read_text().replace('"compile_seconds": 0.5', '"compile_seconds": "x"'))


def test_a_run_that_cannot_be_read_does_not_keep_others_from_being_compared(tmp_path: Path, run: Run) -> None:
    broken = make(tmp_path, rounds(cell(), [1.0]), later=10)
    (broken.path / "machine.json").write_text("[" * 100_000)
    with pytest.warns(DamagedRunWarning, match=rf"run {broken.id} is left out: this JSON is nested too deeply"):
        compared = comparison(NO_MATRIX, tmp_path, SIDES, best=False)
    assert compared.rows[0].runs == (run.id,)


def test_the_newest_run_that_can_be_read_is_the_newest(tmp_path: Path, run: Run) -> None:
    broken = make(tmp_path, rounds(cell(), [1.0]), later=10)
    (broken.path / "journal.jsonl").write_text("nonsense\nnonsense\n")
    with pytest.warns(DamagedRunWarning, match=rf"run {broken.id} is left out: .*no line is sound"):
        assert find_run(tmp_path, None) == run
    with pytest.warns(DamagedRunWarning, match=broken.id):
        assert write_site(tmp_path, tmp_path / "site", 0.03, print).exists()


def test_damaged_records_are_notes_of_the_report_and_of_the_check(tmp_path: Path, run: Run) -> None:
    damage_records(run)
    with pytest.warns(DamagedRunWarning, match="3 records are damaged and left out"):
        checked = check(tmp_path, run.id, NO_MATRIX)
    assert checked.notes[0].startswith("3 records are damaged and left out: ")
    assert checked.counts.good == 3
    with pytest.warns(DamagedRunWarning):
        write_report(analyse_run(run, 0.03), run)
    assert "3 records are damaged and left out" in (run.path / "index.html").read_text()
    assert "3 records are damaged and left out" in (run.path / "report.md").read_text()


def test_a_record_of_another_shape_is_left_out_where_it_has_no_checksum(tmp_path: Path, run: Run) -> None:
    damage_records(run)
    reseal(run)
    with pytest.warns(DamagedRunWarning, match="compile_seconds: it should be a valid number, not 'x'"):
        assert check(tmp_path, run.id, NO_MATRIX).counts.good == 3


def test_a_resumed_run_measures_the_rounds_of_damaged_records_again(run: Run) -> None:
    case_id = cell().case_id
    for number in range(3):
        run.note("round", case=case_id, round=number)
    (file,) = (run.path / "records").glob("torch-1.0~*.1.1.json")
    file.write_text("{}")
    behind = past(run, run.journal())
    assert behind.finished == {(case_id, 0), (case_id, 2)}
    assert behind.attempts[case_id, 1] == 1  # the next attempt is the second


def test_the_command_line_prints_each_warning_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with warnings.catch_warnings():
        console.note_damage()
        for _ in range(2):
            warnings.warn("1 record is damaged", DamagedRunWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: 1 record is damaged\n"


@pytest.mark.parametrize(
    "change",
    [
        {"again": 5},
        {"again": {"ratio_low": "x"}},
        {"cell": ["a"]},
        {"state": None},
        {"again": {"verdict": "same", "rounds": 10**400}},
    ],
)
def test_a_stored_night_of_another_shape_is_ignored(tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / "nights").mkdir()
    path = tmp_path / "nights" / "20261120-104500-ab12.json"
    stored = {"cell": "a/b/c/d/e/f", "before": "x", "state": "no-time", "again": None}
    path.write_text(json.dumps({"changes": [stored]}))
    assert read_history(tmp_path).nights == (path.stem,)
    path.write_text(json.dumps({"changes": [{**stored, **change}]}))
    assert read_history(tmp_path).nights == ()
    path.write_text("[" * 100_000)
    assert read_history(tmp_path).nights == ()


@pytest.mark.parametrize("content", ["[" * 100_000, "[]", '{"devices": 5}', '{"devices": {"a": {"b": {"run": 5}}}}'])
def test_anchors_of_another_shape_are_an_error_and_stay(tmp_path: Path, content: str) -> None:
    path = tmp_path / "anchors.json"
    path.write_text(content)
    for use in (lambda: read_pins(tmp_path, "a"), lambda: write_pins(tmp_path, "a", {})):
        with pytest.raises(Exception, match=r"anchors\.json") as caught:
            use()
        assert caught.type.__name__ == "RunnerError"
    assert path.read_text() == content


@pytest.mark.parametrize("content", ["[]", "[" * 100_000, '{"grade": 5}', "\0"])
def test_a_summary_of_another_shape_is_written_again(tmp_path: Path, run: Run, content: str) -> None:
    write_report(analyse_run(run, 0.03), run)
    path = run.path / "summary.json"
    expected = path.read_text()
    path.write_text(content)
    assert [entry[0] for entry in listing("runs", NO_MATRIX, tmp_path)] == [run.id]
    write_site(tmp_path, tmp_path / "site", 0.03, print)
    assert path.read_text() == expected


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_report_that_cannot_be_written_is_a_sentence(run: Run, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, "refused")

    monkeypatch.setattr("runner.store.documents.write_whole", refuse)
    with pytest.raises(RecordError, match=rf"{run.path}/.* cannot be written: refused") as caught:
        write_report(analyse_run(run, 0.03), run)
    assert ("make room" in str(caught.value)) == (code == errno.ENOSPC)
    with pytest.raises(RecordError, match=r"anchors\.json cannot be written: refused"):
        write_pins(run.path, "a", {})
    with pytest.raises(RecordError, match=r"cannot be written: refused"):
        write_site(run.path.parent.parent, run.path / "site", 0.03, print)


@pytest.mark.parametrize(("code", "hint"), [(errno.ENOSPC, "make room"), (errno.ENAMETOOLONG, "choose a shorter name")])
def test_a_file_that_cannot_be_written_while_measuring_is_named(run: Run, code: int, hint: str) -> None:
    progress = Progress(lambda _: None)
    message = "/cache/file cannot be written: refused"
    with pytest.raises(RunnerError, match=message) as caught, recorded_ending(run, progress):
        raise OSError(code, "refused", "/cache/file")
    assert f"hint: {hint}, then `runner run --resume" in str(caught.value)
