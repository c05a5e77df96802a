"""Runs of another machine enter `reports/imports` and the history, and nothing of an archive reaches another folder."""

import gzip
import io
import json
import os
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from runner.core.errors import RunnerError
from runner.history.database import History
from runner.store.run import Run
from runner.watch.imports import Format, Imported, archives, import_files, stored_entries
from runner.watch.series.rebuild import rebuild
from tests.support.fake_runs import cell, good, make, rounds

SECONDS = [1.0, 1.01, 0.99]


def foreign_run(folder: Path, host: str = "gpu-box", later: int = 0) -> Run:
    """Return a run of another machine."""
    return make(folder, rounds(cell(), SECONDS), host=host, later=later)


def imported(reports: Path, *names: object) -> Imported:
    return import_files([str(name) for name in names], reports, 0.02)


def packed(run: Run, archive: Path, prefix: str = "runs", extra: tuple[tarfile.TarInfo, ...] = ()) -> Path:
    with tarfile.open(archive, "w:gz") as stream:
        stream.add(run.path, arcname=f"{prefix}/{run.id}")
        for member in extra:
            stream.addfile(member, io.BytesIO(b"x" * member.size))
    return archive


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 1) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size if kind == tarfile.REGTYPE else 0
    return info


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_run_of_another_machine_is_a_series_of_its_own(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    ours = make(reports, rounds(cell(), SECONDS), host="here")
    with History.open(f"sqlite:///{reports / 'history.db'}") as history:
        rebuild(reports, history, 0.02, print, ())
    theirs = foreign_run(tmp_path / "other", later=5)
    ((_, entry, is_new),) = imported(reports, theirs.path).runs
    assert (entry.kind, entry.host, is_new) == ("import", "gpu-box", True)
    with History.open(f"sqlite:///{reports / 'history.db'}") as history:
        series = {device: points for device, _, points in history.all_series(cell().id)}
    assert {device: [point.run for point in points] for device, points in series.items()} == {
        entry.series_device: [theirs.id],
        next(device for device in series if "gpu-box" not in device): [ours.id],
    }
    assert not (reports / "runs" / theirs.id).exists()
    assert (reports / "imports/runs" / theirs.id / "records").is_dir()


@pytest.mark.parametrize("form", ["run", "reports", "archive"])
def test_folders_and_archives_are_the_same_import_and_enter_once(tmp_path: Path, form: str) -> None:
    run = foreign_run(tmp_path / "other")
    source = {"run": run.path, "reports": tmp_path / "other", "archive": packed(run, tmp_path / "a.tar.gz")}[form]
    reports = tmp_path / "reports"
    ((_, first, is_new),) = imported(reports, source).runs
    ((_, again, is_new_again),) = imported(reports, source).runs
    assert (is_new, is_new_again, first) == (True, False, again)
    assert first.cells[0].seconds == 1.0
    with History.open(f"sqlite:///{tmp_path / 'second.db'}") as history:
        assert rebuild(reports, history, 0.02, print, stored_entries(reports, 0.02)).changed == 1
        (row,) = history.runs()
        assert (row.kind, row.host, row.cells) == ("import", "gpu-box", 1)
    assert not list((reports / "imports").glob(".*")), "what was unpacked is moved or removed"


def test_only_files_of_a_run_leave_an_archive(tmp_path: Path) -> None:
    run = foreign_run(tmp_path / "other")
    hostile = (
        member(f"runs/{run.id}/../../evil.json"),
        member("/etc/evil.json"),
        member("../evil.json"),
        member(f"runs/{run.id}/records/../../../../evil.json"),
        member(f"runs/{run.id}/index.html"),
        member(f"runs/{run.id}/logs/evil.log", tarfile.SYMTYPE, "/etc/passwd"),
        member(f"runs/{run.id}/records/evil.json", tarfile.LNKTYPE, "/etc/passwd"),
        member(f"runs/{run.id}/records/pipe.json", tarfile.FIFOTYPE),
        member(f"runs/{run.id}/records/device.json", tarfile.CHRTYPE),
        member(f"runs/{run.id}/environments.json/x"),
    )
    result = imported(tmp_path / "reports", packed(run, tmp_path / "a.tar.gz", extra=hostile))
    assert len(result.runs) == 1
    assert any("10 of its members are left out" in note for _, note in result.notes)
    copied = files_below(tmp_path / "reports/imports/runs")
    assert copied == {f"{run.id}/{name}" for name in files_below(run.path) if not name.endswith(".lock")}
    assert not list(tmp_path.rglob("evil*"))
    assert not any(path.is_symlink() for path in (tmp_path / "reports").rglob("*"))


def test_links_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    run = foreign_run(tmp_path / "other")
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    (run.path / "records/link.json").symlink_to(secret)
    os.mkfifo(run.path / "logs/pipe.log")
    imported(tmp_path / "reports", run.path)
    assert not {"link.json", "pipe.log"} & {path.name for path in (tmp_path / "reports").rglob("*")}


@pytest.mark.parametrize("cut", [10, 200, 0.5, 0.9])
def test_a_cut_archive_is_a_sentence(tmp_path: Path, cut: float) -> None:
    archive = packed(foreign_run(tmp_path / "other"), tmp_path / "a.tar.gz")
    content = archive.read_bytes()
    archive.write_bytes(content[: int(cut if cut > 1 else cut * len(content))])
    (problem,) = imported(tmp_path / "reports", archive).failures
    assert "a.tar.gz was not imported" in problem.message
    assert not list((tmp_path / "reports/imports").rglob("*.json"))


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = foreign_run(tmp_path / "other")
    large = member(f"runs/{run.id}/logs/large.log", size=3_000_000)
    archive = packed(run, tmp_path / "a.tar.gz", extra=(large,))
    assert archive.stat().st_size < 30_000
    monkeypatch.setattr(archives, "MAX_FILE_BYTES", 1_000_000)
    (problem,) = imported(tmp_path / "reports", archive).failures
    assert "beyond the limits" in problem.message
    assert not list((tmp_path / "reports/imports").rglob("*.json"))


def test_a_long_name_takes_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = foreign_run(tmp_path / "other")
    long = (member("a/" * 250_000 + f"runs/{run.id}/plan.json"), member("/".join(["20261120-104500-aaaa"] * 500)))
    split: list[int] = []

    def path_of(name: str) -> PurePosixPath:
        split.append(len(name))
        return PurePosixPath(name)

    monkeypatch.setattr("runner.watch.imports.archives.PurePosixPath", path_of)
    result = imported(tmp_path / "reports", packed(run, tmp_path / "a.tar.gz", extra=long))
    assert len(result.runs) == 1
    assert max(split) < 1025
    assert any("2 of its members are left out" in note for _, note in result.notes)


def test_a_wrong_checksum_behind_the_last_member_is_found(tmp_path: Path) -> None:
    archive = packed(foreign_run(tmp_path / "other"), tmp_path / "a.tar.gz")
    content = archive.read_bytes()
    archive.write_bytes(content[:-8] + bytes([content[-8] ^ 1]) + content[-7:])
    (problem,) = imported(tmp_path / "reports", archive).failures
    assert "CRC" in problem.message
    assert not list((tmp_path / "reports/imports").rglob("*.json"))


def test_a_run_whose_plan_is_a_link_is_a_sentence(tmp_path: Path) -> None:
    run = foreign_run(tmp_path / "other")
    (run.path / "plan.json").rename(tmp_path / "plan.json")
    (run.path / "plan.json").symlink_to(tmp_path / "plan.json")
    (problem,) = imported(tmp_path / "reports", run.path).failures
    assert problem.message.endswith("its plan.json is a link, and no link is followed")


def test_digits_of_other_scripts_name_no_run(tmp_path: Path) -> None:
    run = foreign_run(tmp_path / "other")
    moved = Run(run.path.rename(run.path.with_name(run.id.translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")))))
    (problem,) = imported(tmp_path / "reports", moved.path).failures
    assert "the name of its folder is no run's" in problem.message
    (problem,) = imported(tmp_path / "reports", packed(moved, tmp_path / "a.tar.gz")).failures
    assert "it holds no run folder" in problem.message


def test_an_import_never_takes_the_place_of_a_run_of_the_team(tmp_path: Path) -> None:
    run = foreign_run(tmp_path / "other")
    url = f"sqlite:///{tmp_path}/team.db"
    with History.open(url) as history:
        rebuild(tmp_path / "other", history, 0.02, print, ())
        before = history.runs()
    result = import_files([str(run.path)], tmp_path / "reports", 0.02, history=url)
    assert [is_new for _, _, is_new in result.runs] == [False]
    with History.open(url) as history:
        assert history.runs() == before


def test_a_header_of_a_huge_size_takes_no_memory(tmp_path: Path) -> None:
    header = member("x", tarfile.REGTYPE)
    header.type, header.size = tarfile.XHDTYPE, 1 << 40
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + b"0" * 10_000))
    (problem,) = imported(tmp_path / "reports", archive).failures
    assert "was not imported" in problem.message


def test_a_run_that_went_on_replaces_the_former(tmp_path: Path) -> None:
    run, reports = foreign_run(tmp_path / "other"), tmp_path / "reports"
    imported(reports, run.path)
    run.add(good(cell(), 3, [1.02], run=run.id))
    ((_, entry, is_new),) = imported(reports, run.path).runs
    assert (entry.cells[0].rounds, is_new) == (4, True)
    with History.open(f"sqlite:///{reports / 'history.db'}") as history:
        (point,) = history.series(cell().id)
        assert point.rounds == 4


def test_another_run_of_the_same_id_is_refused(tmp_path: Path) -> None:
    run, reports = foreign_run(tmp_path / "other"), tmp_path / "reports"
    imported(reports, run.path)
    journal = run.path / "journal.jsonl"
    *lines, last = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines))
    (run.path / json.loads(last)["file"]).unlink()
    (problem,) = imported(reports, run.path).failures
    assert "is another run, or has more records" in problem.message


def test_a_run_of_this_machine_is_not_imported(tmp_path: Path) -> None:
    run = foreign_run(tmp_path / "reports")
    assert "is a run of this machine" in imported(tmp_path / "reports", run.path).failures[0].message
    assert "is the folder of this machine" in imported(tmp_path / "reports", tmp_path / "reports").failures[0].message


def test_a_damaged_run_does_not_keep_the_others_out(tmp_path: Path) -> None:
    other = tmp_path / "other"
    good_run, damaged = foreign_run(other), foreign_run(other, later=1)
    document = json.loads((damaged.path / "plan.json").read_text())
    (damaged.path / "plan.json").write_text(json.dumps({**document, "cells": 3}))
    result = imported(tmp_path / "reports", other)
    assert [entry.run for _, entry, _ in result.runs] == [good_run.id]
    assert any(damaged.id in note for _, note in result.notes)


def test_a_run_whose_times_are_none_is_left_outside(tmp_path: Path) -> None:
    run = make(tmp_path / "other", rounds(cell(), [5e-324] * 3), host="gpu-box")
    (problem,) = imported(tmp_path / "reports", run.path).failures
    assert "seconds: it should be greater than" in problem.message
    assert not (tmp_path / "reports/imports/runs").exists()


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunnerError):
        raise RunnerError(*imported(tmp_path / "reports", tmp_path / "empty").failures)


@pytest.mark.parametrize("name", ["auto", "runs", "table", "asv"])
def test_a_pipe_is_not_read(tmp_path: Path, name: Format) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = import_files([str(tmp_path / "pipe")], tmp_path / "reports", 0.02, format=name)
    assert len(result.failures) == 1
