"""Run folders: what is written is read back, once, and what was cut off or is newer is told apart."""

import errno
import json
import math
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from runner.core.errors import RecordError, UsageError
from runner.core.fact_types import TYPED_FACTS
from runner.core.facts import VALUE_COLUMNS
from runner.core.model import Cell, Record
from runner.store import records as stored_records
from runner.store.damage import DamagedRecord
from runner.store.documents import upgrade
from runner.store.run import Run, is_ahead, runs
from tests.support.changed_runs import CHECKSUM, reseal, unsealed
from tests.support.fake_runs import NOW, bad, cell, facts, good, make, plan


def lines(run: Run) -> list[str]:
    return (run.path / "journal.jsonl").read_text().splitlines()


def test_a_run_is_named_for_the_time_and_holds_what_it_was_given(tmp_path: Path) -> None:
    cases = {"asr-lstm/1x320-ce-short": {"steps": 7}}
    run = Run.create(tmp_path, plan([cell()]), cases, {"cpu": "x"}, {"seed": 3}, NOW)
    run.write_environments({"torch-2.x": {"framework": "torch"}})
    assert run.id[:16] == "20261120-104500-"
    assert len(run.id) == 20
    assert run.path == tmp_path / "runs" / run.id
    assert run.plan() == plan([cell()])
    assert run.cases() == cases
    assert run.machine() == {"version": 1, "cpu": "x"}
    assert run.journal().header["seed"] == 3
    assert run.environments() == {"torch-2.x": {"framework": "torch"}}
    assert Run.open(run.path) == run


def test_a_run_of_the_future_is_the_newest_only_where_all_are(tmp_path: Path) -> None:
    for name in ("20261120-104500-aaaa", "20261121-104500-bbbb", "20361121-104500-cccc", "20371121-104500-dddd"):
        make(tmp_path, [good(cell(), 0, [0.25])]).path.rename(tmp_path / "runs" / name)
    names = [run.id[-4:] for run in runs(tmp_path, datetime(2026, 11, 21, 10, tzinfo=UTC))]
    assert names == ["bbbb", "aaaa", "dddd", "cccc"], "clocks of hosts may be an hour apart"
    assert [run.id[-4:] for run in runs(tmp_path, datetime(2040, 1, 1, tzinfo=UTC))] == ["dddd", "cccc", "bbbb", "aaaa"]
    assert [run.id[-4:] for run in runs(tmp_path, datetime(2020, 1, 1, tzinfo=UTC))] == ["dddd", "cccc", "bbbb", "aaaa"]
    assert not is_ahead("a-copy-of-a-run")


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    records = [good(cell(), 0, [0.25, 0.5]), bad(cell("tf-1.15", "lstm-block-cell"), 0, "oom", "too much")]
    run = make(tmp_path, records)
    stored = list(run.records())
    assert [record.run for record in stored] == [run.id, run.id]
    assert [
        (record.cell, record.seconds, record.failure, record.reason, record.loss, dict(record.facts))
        for record in stored
    ] == [
        (record.cell, record.seconds, record.failure, record.reason, record.loss, dict(record.facts))
        for record in records
    ]


def test_the_file_of_a_record_has_the_keys_that_scripts_rely_on(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), 2, [0.25])])
    file = run.path / "records" / "torch-2.x~nn-lstm~asr-lstm~1x320-ce-short~train~fp32.2.1.json"
    assert json.loads(file.read_text()) == {
        "version": 1,
        "cell": "torch-2.x/nn-lstm/asr-lstm/1x320-ce-short/train/fp32",
        "run": run.id,
        "round": 2,
        "attempt": 1,
        "status": "ok",
        "class": None,
        "reason": None,
        "seconds": [0.25],
        "warmup": [0.2, 0.1],
        "compile_seconds": 0.5,
        "loss": [2.0, 1.5, 1.25],
        "reference_loss": [2.0, 1.5, 1.25],
        "facts": facts(cell(), server="torch-2.x#3"),
    }
    assert json.loads(lines(run)[1])["file"] == f"records/{file.name}"


def test_the_log_of_a_cell_names_each_round(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), 0, [0.25]), good(cell(), 1, [0.25])])
    text = (run.path / "logs" / "torch-2.x~nn-lstm~asr-lstm~1x320-ce-short~train~fp32.log").read_text()
    assert text.count(f"log of {cell().id}") == 2
    assert "--- round 1, attempt 1, ok" in text


def test_a_number_that_is_not_finite_is_null(tmp_path: Path) -> None:
    run = make(tmp_path, [bad(cell(), 0, "nan", "a loss is not finite", gradient_error=math.inf)])
    (stored,) = run.records()
    assert stored.facts["gradient_error"] is None


def test_the_last_attempt_counts_once_even_where_an_earlier_one_ends_later(tmp_path: Path) -> None:
    run = Run.create(tmp_path, plan([cell()]), {}, {}, {}, NOW)
    first, second = good(cell(), 0, [1.0]), good(cell(), 0, [2.0])
    object.__setattr__(second, "attempt", 2)
    for record in (second, first, first):
        run.add(record)
    assert [(record.attempt, record.seconds) for record in run.records()] == [(2, (2.0,))]


def test_a_record_that_the_journal_does_not_name_was_never_finished(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), 0, [1.0]), good(cell(), 1, [1.0])])
    (run.path / "journal.jsonl").write_text("".join(line + "\n" for line in lines(run)[:2]))
    assert [record.round for record in run.records()] == [0]


@pytest.mark.parametrize("tail", ['{"version": 1, "ce', "\0\0\0\0\n", '"text"\n', '{"version": 1}'])
def test_a_last_line_that_was_cut_off_is_a_warning_and_the_next_record_takes_its_place(
    tmp_path: Path, tail: str
) -> None:
    run = make(tmp_path, [good(cell(), 0, [1.0])])
    with (run.path / "journal.jsonl").open("a") as stream:
        stream.write(tail)
    (warning,) = run.journal().warnings
    assert "journal.jsonl:3" in warning
    run.add(good(cell(), 1, [1.0]))
    assert run.journal().warnings == ()
    assert [record.round for record in run.records()] == [0, 1]


def test_the_lines_of_a_block_count_together_or_not_at_all(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), 1, [0.25])])
    journal = run.path / "journal.jsonl"
    start = journal.stat().st_size
    run.add_block([good(cell(), 2, [0.5]), good(cell(), 3, [0.5])], {}, [("canary", _CANARY), ("round", _ROUND)])
    complete = journal.read_bytes()
    assert len(run.journal().entries) == 3
    for size in range(start, len(complete), 7):
        journal.write_bytes(complete[:size])
        cut = run.journal()
        assert (len(cut.entries), cut.canary, cut.finished) == (1, (), frozenset()), size
        assert len(cut.warnings) == (size > start), size
        run.note("round", **_ROUND)
        assert run.journal().finished == {("a/b", 2)}
        assert not run.journal().warnings, size


_CANARY = {"case": "a/b", "round": 2, "seconds": 0.01}
_ROUND = {"case": "a/b", "round": 2}


def test_a_garbled_line_before_the_last_is_left_out_with_its_place(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), number, [1.0]) for number in range(3)])
    kept = lines(run)
    (run.path / "journal.jsonl").write_text("\n".join([*kept[:2], "{nonsense", kept[3]]) + "\n")
    assert [record.round for record in run.records()] == [0, 2]
    (warning,) = run.journal().warnings
    assert warning.startswith("1 line of the journal is damaged and left out: ")
    assert warning.endswith("journal.jsonl:3: this is not JSON: Expecting property name enclosed in double quotes")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seconds": []}, "is ok but has no seconds"),
        ({"seconds": [0.1, 0.0]}, r"seconds.1: it should be greater than 0, not 0.0"),
        ({"seconds": ["fast"]}, "seconds.0: it should be a valid number, not 'fast'"),
        ({"seconds": 3}, "seconds: it should be a valid array, not 3"),
        ({"seconds": [10**400]}, "seconds.0"),
        ({"status": "fine"}, "status: it should be 'ok' or 'failed', not 'fine'"),
        ({"status": "failed", "class": "sad"}, "no failure class 'sad'"),
        ({"status": "failed"}, "its status is 'failed', but the journal has 'ok'"),
        ({"cell": "a/b/c/d/e/f"}, "its cell is 'a/b/c/d/e/f'"),
        ({"round": "one"}, "round: it should be a valid integer, not 'one'"),
        ({"round": 1}, "its round is 1, but the journal has 0"),
        ({"compile_seconds": "x"}, "compile_seconds: it should be a valid number, not 'x'"),
        ({"facts": 5}, "facts: it should be an object, not 5"),
        ({"facts": {"throttled": "text"}}, "facts.throttled: it should be a valid integer, not 'text'"),
        ({"facts": {"gradient_errors": {"bias": "x"}}}, "facts.gradient_errors.bias: it should be a valid number"),
        ({"facts": {"other": 10**400}}, "it holds a number beyond 9e\\+15"),
    ],
)
def test_a_record_that_cannot_be_true_is_an_error_that_names_its_file(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    run = make(tmp_path, [good(cell(), 0, [1.0])])
    (file,) = (run.path / "records").iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    reseal(run)
    with pytest.raises(RecordError, match=message) as caught:
        list(run.records())
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("text", ["", "[1]", '{"version": 1, ', "\xff"])
def test_a_garbled_record_is_an_error_that_names_its_file(tmp_path: Path, text: str) -> None:
    run = make(tmp_path, [good(cell(), 0, [1.0])])
    (file,) = (run.path / "records").iterdir()
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(RecordError, match=file.name.replace("+", r"\+")):
        list(run.records())


def test_a_record_of_many_samples_is_read_to_its_end(tmp_path: Path) -> None:
    times = [1 / number for number in range(1, 20_001)]
    run = make(tmp_path, [good(cell(), 0, times), good(cell(), 1, [0.1 + 0.2])])
    (file, _) = sorted((run.path / "records").iterdir())
    assert file.stat().st_size > 1 << 18
    assert [list(record.seconds) for record in run.records()] == [times, [0.1 + 0.2]]


def test_a_record_whose_size_is_just_what_is_read_at_a_time_is_read(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), 0, [1.0])])
    (file,) = (run.path / "records").iterdir()
    file.write_bytes(file.read_bytes().ljust(1 << 16))
    reseal(run)
    assert [record.seconds for record in run.records()] == [(1.0,)]


def test_half_of_a_surrogate_pair_is_read_as_a_question_mark(tmp_path: Path) -> None:
    run = make(tmp_path, [bad(cell(), 0, "crash", "half of a pair: \ud83d")])
    assert [record.reason for record in run.records()] == ["half of a pair: ?"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"version": 1,\n "cell": }', r"json: line 2, column 10: this is not JSON: Expecting value"),
        (b'{"version": 1, "cell": "\xff"}', r"json: line 1, column 1: this is not UTF-8"),
        (b"[1, 2]", r"json: line 1, column 1: this is not a JSON object"),
        (b'{"version": ' + b"[" * 100_000, r"json: line 1, column 1: this JSON is nested too deeply"),
        (b'{"version": 1, "x": ' + b"1" * 4400 + b"}", r"json: line 1, column 1: this is not JSON: Exceeds the limit"),
        (b'{"version": NaN}', r"json: line 1, column 1: this is not JSON: NaN is not a JSON number"),
    ],
)
def test_what_is_wrong_with_a_record_is_said_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    run = make(tmp_path, [good(cell(), 0, [1.0])])
    (file,) = (run.path / "records").iterdir()
    file.write_bytes(content)
    reseal(run)
    with pytest.raises(RecordError, match=message):
        list(run.records())


@pytest.mark.parametrize("name", ["plan.json", "machine.json", "environments.json"])
def test_a_newer_file_is_refused_with_both_versions_and_a_hint(tmp_path: Path, name: str) -> None:
    run = make(tmp_path, [good(cell(), 0, [1.0])])
    (run.path / name).write_text('{"version": 7}')
    with pytest.raises(RecordError) as caught:
        {"plan.json": run.plan, "machine.json": run.machine, "environments.json": run.environments}[name]()
    assert caught.value.exit_code == 6
    assert f"{run.path / name} has version 7, and this program reads versions up to 1" in str(caught.value)
    assert "hint: read it with the runner that wrote it" in str(caught.value)


def test_an_older_document_is_upgraded_one_version_at_a_time(tmp_path: Path) -> None:
    table = {"plan.json": {1: lambda old: {**old, "trail": "b"}, 2: lambda old: {**old, "trail": old["trail"] + "c"}}}
    upgraded = upgrade({"version": 1}, tmp_path, "plan.json", table)
    assert upgraded == {"version": 3, "trail": "bc"}
    assert upgrade({"version": 3}, tmp_path, "plan.json", table) == {"version": 3}
    with pytest.raises(RecordError, match="up to 3"):
        upgrade({"version": 4}, tmp_path, "plan.json", table)
    with pytest.raises(RecordError, match="cannot be upgraded"):
        upgrade({"version": 0}, tmp_path, "plan.json", table)


@pytest.mark.parametrize("version", [None, "1", True, 1.0])
def test_a_document_without_a_version_is_refused(tmp_path: Path, version: object) -> None:
    with pytest.raises(RecordError, match="has no version"):
        upgrade({"version": version}, tmp_path, "plan.json")


def test_runs_are_listed_newest_first_and_a_folder_without_a_plan_is_none(tmp_path: Path) -> None:
    assert runs(tmp_path) == []
    late = make(tmp_path, [], later=5)
    early = make(tmp_path, [])
    (tmp_path / "runs" / "20991231-000000-dead").mkdir()
    assert [run.id for run in runs(tmp_path)] == [late.id, early.id]


def test_opening_a_folder_that_holds_no_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"plan\.json cannot be read"):
        Run.open(tmp_path)


def test_a_cell_is_the_cell_of_its_id() -> None:
    for of in (cell(), cell(phase="train+published"), cell("tf-1.15", "lstm-cell", precision="bf16")):
        assert Cell.parse(of.id) == of


@pytest.mark.parametrize(
    "name", ["", "a/b/c/d/e", "a/b/c/d/e/f/g", "a//c/d/e/f", "../b/c/d/e/f", "a/b/c/d~/e/f", "a/b c/c/d/e/f"]
)
def test_what_is_not_the_id_of_a_cell_is_an_error(name: str) -> None:
    with pytest.raises(RecordError, match="is not the id of a test"):
        Cell.parse(name)


def test_a_changed_record_is_left_out_and_named(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), number, [0.25]) for number in range(3)])
    file = sorted((run.path / "records").iterdir())[1]
    file.write_text(file.read_text().replace("0.25", "0.26", 1))
    left_out: list[DamagedRecord] = []
    assert [record.round for record in run.records(None, left_out.append)] == [0, 2]
    assert [each.entry.round for each in left_out] == [1]
    assert left_out[0].reason == f"{file}: it does not agree with its checksum in the journal"
    assert run.warnings(run.journal(), left_out) == (f"1 record is damaged and left out: {left_out[0].reason}",)


def test_records_that_no_line_names_are_counted(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), number, [0.25]) for number in range(3)])
    (run.path / "journal.jsonl").write_text("".join(line + "\n" for line in lines(run)[:2]))
    (warning,) = run.warnings(run.journal(), [])
    assert warning.startswith("2 records are not in the journal and left out: ")
    assert warning.endswith(str(run.path))
    with run.hold():  # the runner that measures adds the line of a record after its file
        assert run.warnings(run.journal(), []) == ()


def test_a_changed_line_a_missing_line_and_a_repeated_line_are_warnings(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), number, [0.25]) for number in range(5)])
    kept = lines(run)
    changed = kept[2].replace('"round": 1', '"round": 7')
    (run.path / "journal.jsonl").write_text("\n".join([*kept[:2], changed, kept[4], kept[4], kept[5]]) + "\n")
    journal = run.journal()
    assert [entry.round for entry in journal.entries] == [0, 3, 4]
    path = run.path / "journal.jsonl"
    assert journal.warnings == (
        f"1 line of the journal is damaged and left out: {path}:3: this line does not agree with its checksum",
        f"1 line of the journal is missing: {path}",
        f"1 line of the journal is repeated, and counted once: {path}",
    )


def test_a_line_without_its_checksum_is_left_out(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), number, [0.25]) for number in range(2)])
    kept = lines(run)
    (run.path / "journal.jsonl").write_text("\n".join([kept[0], CHECKSUM.sub("", kept[1]), kept[2]]) + "\n")
    assert [entry.round for entry in run.journal().entries] == [1]


def test_a_run_of_an_older_program_is_read_and_continued(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), number, [0.25]) for number in range(2)])
    (run.path / "journal.jsonl").write_text("".join(unsealed(line) + "\n" for line in lines(run)))
    assert '"version": 2' in lines(run)[1]
    assert "number" not in lines(run)[1]
    run.add(good(cell(), 2, [0.25]))
    assert json.loads(lines(run)[3])["number"] == 4
    assert [record.round for record in run.records()] == [0, 1, 2]
    assert run.warnings(run.journal(), []) == ()


def test_a_long_line_is_found_whole_before_the_next_is_appended(tmp_path: Path) -> None:
    run = make(tmp_path, [])
    run.note("resumed", digests={f"environment-{number}": "ab" * 32 for number in range(3000)})
    run.note("ended", how="done")
    assert [json.loads(line)["number"] for line in lines(run)] == [1, 2, 3]
    assert run.journal().ended == "done"


@pytest.mark.parametrize("name", ["plan.json", "cases.json", "machine.json", "environments.json"])
def test_a_changed_document_is_an_error_that_names_it(tmp_path: Path, name: str) -> None:
    run = make(tmp_path, [])
    path = run.path / name
    path.write_text(path.read_text().replace('"version": 1', '"version":  1'))
    with pytest.raises(RecordError, match=rf"{name} is damaged: it does not agree with its checksum"):
        (run.plan(), run.cases(), run.machine(), run.environments())


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("plan.json", {"cells": 5}, "cells: it should be a valid list, not 5"),
        ("plan.json", {"rounds": "x"}, "rounds: it should be a valid integer, not 'x'"),
        ("machine.json", {"gpu": [1]}, "gpu: it should be a valid dictionary, not a list"),
        ("machine.json", {"cpu": 10**400}, "a number beyond"),
        ("environments.json", {"environments": {"a": {"packages": 5}}}, "environments.a.packages: it should be"),
        ("cases.json", {"cases": {"a/b": 1}}, "cases: it should be a valid dictionary, not 1"),
    ],
)
def test_a_document_of_another_shape_is_an_error(
    tmp_path: Path, name: str, change: dict[str, object], message: str
) -> None:
    run = make(tmp_path, [])
    path = run.path / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    reseal(run)
    with pytest.raises(RecordError, match=message):
        (run.plan(), run.cases(), run.machine(), run.environments())


@pytest.mark.parametrize("name", ["plan.json", "cases.json", "machine.json", "environments.json", "journal.jsonl"])
@pytest.mark.parametrize("kind", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_regular_file_is_never_read(tmp_path: Path, name: str, kind: Callable[[Path], object]) -> None:
    run = make(tmp_path, [good(cell(), 0, [0.25])])
    (run.path / name).unlink()
    kind(run.path / name)
    with pytest.raises(RecordError, match=rf"{name} cannot be read: it is (not a regular file|a folder)"):
        (run.plan(), run.cases(), run.machine(), run.environments(), run.journal())


def test_a_journal_names_files_in_its_folder_of_records_only(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), number, [0.25]) for number in range(2)])
    journal = run.path / "journal.jsonl"
    for outside in ("../../../dev/zero", "records/../plan.json", "/dev/zero", "records/..json/x.json"):
        kept = journal.read_text()
        first = lines(run)[1]
        journal.write_text(kept.replace(json.loads(first)["file"], outside))
        reseal(run)
        assert [entry.round for entry in run.journal().entries] == [1]
        assert "file: it should match pattern" in run.journal().warnings[0]
        journal.write_text(kept)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.ENAMETOOLONG])
def test_a_folder_that_cannot_be_made_is_a_sentence_with_the_path_and_leaves_nothing(
    tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("runner.store.run.append", refuse)
    with pytest.raises(UsageError, match=rf"journal\.jsonl cannot be written: {os.strerror(code)}"):
        Run.create(tmp_path, plan([cell()]), {}, {}, {}, NOW)
    assert not list((tmp_path / "runs").iterdir())


def test_a_run_that_is_interrupted_while_its_folder_is_made_leaves_none(tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Run.create(tmp_path, plan([cell()]), {}, {}, {}, NOW, complete=interrupt)
    assert not list((tmp_path / "runs").iterdir())


def test_what_cannot_be_written_while_measuring_names_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make(tmp_path, [])

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("runner.store.run.write_whole", refuse)
    with pytest.raises(OSError, match="No space left") as caught:
        run.add(good(cell(), 0, [0.25]))
    assert caught.value.filename.startswith(f"{run.path}/records/torch-2.x~nn-lstm~")


def test_a_log_that_is_a_fifo_or_a_link_is_not_written(tmp_path: Path) -> None:
    run = make(tmp_path, [])
    log = run.path / "logs" / f"{cell().id.replace('/', '~')}.log"
    os.mkfifo(log)
    with pytest.raises(OSError, match="No such device"):
        run.add(good(cell(), 0, [0.25]), "a line")
    log.unlink()
    log.symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic links"):
        run.add(good(cell(), 0, [0.25]), "a line")
    assert not (tmp_path / "target").exists()


def test_a_reports_folder_that_is_no_folder_has_no_runs(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    assert runs(tmp_path) == []


def test_each_fact_that_is_a_value_has_a_shape() -> None:
    assert set(VALUE_COLUMNS) <= TYPED_FACTS


LARGE = 2**53 + 1
CHANGES: dict[str, list[object]] = {
    "cell": ["", "a/b", 7, "x" * 5000],
    "round": [0, -1, 1.0, True, "1", 10**9 + 1, LARGE, None],
    "attempt": [0, 1.5, LARGE],
    "status": ["ok", "failed", "lost", None],
    "class": [None, "oom", 3],
    "seconds": [[1], [0.5, 2], [0.0], [-1.0], [1e101], [None], ["1"], [True], "12", None, {}],
    "warmup": [[], [None, 1], [1e301], [-1e301]],
    "compile_seconds": [None, 1, -2.5, 1e301, "1", False],
    "loss": [[None], [1], [[1.0]]],
    "facts": [{}, [], None, {"fact of a newer program": [1]}],
    "version": [1, 2, "1", None],
    "a field of a newer program": [{"a": [1]}],
}
FACT_CHANGES: dict[str, list[object]] = {
    "load": [1, 0.5, None, "1", 1e301, True],
    "batch": [0, 1, 1.0, LARGE, None],
    "swapped_bytes": [True, 0, -1, 0.5, LARGE],
    "server": ["a#1", "a#1\n", "a#", "#", "a\nb", "a#12345678901", "a#1#2", 3, None],
    "cpus": [[0, 1], [0.5], [True], [LARGE], None, [None]],
    "clock_mhz": [1, [], [1, 2.5], [None], {"a": 1}, {"a": None}, "1", True],
    "model_check": [{"a": "b", "c": True, "d": {"e": None, "f": 1}}, {"a": 1}, {"a": {"b": "c"}}, [], None],
    "gradient_errors": [{"a": None, "b": 1}, {"a": "b"}, []],
    "leads": [[None, 1], ["1"]],
    "held_back": [["a"], [1], "a", None],
    "steady": [True, 1, None],
    "threads": [1, 2.5, "1", [1], {"a": {"b": None}}, None, True],
    "fact of a newer program": ["a"],
}


def parsed(parse: Callable[[bytes], object], content: bytes) -> str:
    try:
        record = parse(content)
    except (ValueError, RecordError):
        return "damaged"
    return json.dumps(stored_records.encode(record, 1), sort_keys=True)  # type: ignore[arg-type]  # 1 is not 1.0


def quick_record(content: bytes) -> Record:
    return stored_records.record_of(stored_records.QUICK.decode(content))


@pytest.mark.parametrize(
    ("parent", "field", "value"),
    [
        *(("record", field, value) for field, values in CHANGES.items() for value in values),
        *(("facts", field, value) for field, values in FACT_CHANGES.items() for value in values),
    ],
)
def test_the_quick_way_to_read_a_record_accepts_what_the_declared_shape_does(
    parent: str, field: str, value: object
) -> None:
    document = stored_records.encode(good(cell(), 0, [0.25, 0.5]), 1)
    (document if parent == "record" else document["facts"])[field] = value
    content = json.dumps(document).encode()
    quick = parsed(quick_record, content)
    if "newer program" in field or "newer program" in str(value):
        assert quick in ("damaged", parsed(stored_records.RECORD.validate_json, content))
    else:
        assert quick == parsed(stored_records.RECORD.validate_json, content)


@pytest.mark.parametrize("field", ["cell", "run", "class", "seconds", "facts"])
def test_the_quick_way_to_read_a_record_misses_no_field(field: str) -> None:
    document = stored_records.encode(good(cell(), 0, [0.25]), 1)
    del document[field]
    assert parsed(quick_record, json.dumps(document).encode()) == "damaged"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("name", ["load", "threads"])
def test_the_quick_way_to_read_a_record_refuses_numbers_that_are_not_finite(name: str, number: str) -> None:
    document = stored_records.encode(good(cell(), 0, [0.25]), 1)
    document["facts"][name] = "HERE"
    content = json.dumps(document).replace('"HERE"', number).encode()
    assert parsed(quick_record, content) == "damaged"


def test_the_quick_way_to_read_a_record_knows_the_facts_of_a_whole_record() -> None:
    content = json.dumps(stored_records.encode(good(cell(), 0, [0.25]), 1)).encode()
    assert parsed(quick_record, content) != "damaged"
