"""Disks that are full, folders that belong to others, names that are too long: a sentence with its exit code."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from runner import cli
from runner.cli import console
from runner.core import errors
from runner.core.errors import RecordError, RunnerError, UsageError
from runner.core.progress import Progress
from runner.session.execution.failures import recorded_ending
from runner.store.run import Run
from tests.support.fake_runs import cell, good, make, times

BASE, OTHER = cell("torch-1.0"), cell("torch-2.x")
Command = Callable[..., tuple[int, str]]


@pytest.fixture
def stored(tmp_path: Path) -> Run:
    """A small run in the folder ``reports``."""
    records = [good(of, number, times(1e-3)) for number in (1, 2, 3) for of in (BASE, OTHER)]
    return make(tmp_path / "reports", records)


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stored: Run
) -> Command:
    """Runs a command line in the folder of the reports; returns the exit code and what stderr has."""
    assert stored.path.is_dir()
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["runner", *arguments])
        code = console.run(cli.app)
        return code, capsys.readouterr().err

    return run


def failing(number: int) -> Callable[..., NoReturn]:
    """Return a function that fails as a system call does, without a path."""

    def fail(*_arguments: object, **_options: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("number", sorted(errors.FILE_HINTS))
def test_a_report_that_cannot_be_written_is_blamed_on_its_file(
    number: int, command: Command, stored: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", failing(number))
    code, err = command("report")
    assert code == RecordError.exit_code
    page = f"reports/runs/{stored.id}/index.html"
    assert err == f"error: {page} cannot be written: {os.strerror(number)}\nhint: {errors.FILE_HINTS[number]}\n"
    assert not list(stored.path.glob(".*.tmp"))


@pytest.mark.parametrize(
    ("arguments", "blamed"),
    [
        (("compare", "torch-1.0", "torch-2.x", "-o", "reports"), "reports"),
        (("compare", "torch-1.0", "torch-2.x", "-o", "a/b.svg"), "a/b.svg"),
        (("compare", "torch-1.0", "torch-2.x", "-o", "file/b.txt"), "file/b.txt"),
        (("check", "-o", "x" * 300), "x" * 300),
        (("export", "-o", "a/samples.csv"), "a/samples.csv"),
        (("export", "-o", "x" * 300 + ".parquet"), "x" * 300 + ".parquet"),
        (("schema", "-o", "circle"), "circle"),
        (("schema", "-o", "file/schema.json"), "file/schema.json"),
    ],
)
def test_an_output_that_cannot_be_written_is_named(
    arguments: tuple[str, ...], blamed: str, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    code, err = command(*arguments)
    assert code == UsageError.exit_code
    assert f"error: {blamed}" in err
    assert "cannot be written: " in err
    assert "Traceback" not in err


def test_a_site_that_cannot_be_written_is_named(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, err = command("report", "--site", "file/site")
    assert code == RecordError.exit_code
    assert "error: file/site" in err
    assert errors.FILE_HINTS[errno.ENOTDIR] in err


def test_a_run_with_a_name_that_no_file_has_is_no_run(command: Command) -> None:
    code, err = command("report", "x" * 5000)
    assert code == UsageError.exit_code
    assert "there is no run" in err


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOSPC, errno.EIO])
def test_any_other_error_of_a_file_is_a_sentence(
    number: int, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> NoReturn:
        raise OSError(number, os.strerror(number), "/var/cache/file")

    monkeypatch.setattr("runner.session.results.run_accuracy", fail)
    code, err = command("accuracy")
    assert (code, err.partition("\n")[0]) == (1, f"error: /var/cache/file cannot be used: {os.strerror(number)}")
    assert "Traceback" in command("accuracy", "--traceback")[1]


def test_an_error_that_is_no_file_is_a_bug(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.session.results.run_accuracy", failing(errno.ECONNREFUSED))
    code, err = command("accuracy")
    assert code == 70
    assert "this is a bug in runner" in err


@pytest.mark.parametrize(
    ("blamed", "kind"),
    [("cache/references/a.json", RunnerError), ("reports/runs/{}/records/a.json", RecordError), (None, RecordError)],
)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.ENAMETOOLONG])
def test_a_run_that_ends_on_a_full_disk_blames_the_right_folder(
    blamed: str | None, kind: type[RunnerError], number: int, stored: Run, tmp_path: Path
) -> None:
    path = None if blamed is None else str(tmp_path / blamed.format(stored.id))
    with pytest.raises(RunnerError) as raised, recorded_ending(stored, Progress(lambda _: None)):
        raise OSError(number, os.strerror(number), path)
    assert type(raised.value) is kind
    (problem,) = raised.value.problems
    assert problem.message == f"{path or stored.path} cannot be written: {os.strerror(number)}"
    assert problem.hint
    assert problem.hint.startswith(f"{errors.FILE_HINTS[number]}, then `runner run --resume ")


def test_without_a_home_folder_the_cache_has_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    from runner.core import paths

    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
    for environ in ({}, {"HOME": ""}):
        with pytest.raises(UsageError, match="user 4000000000 of this machine has no home folder") as error:
            paths.cache_folder(environ)
        assert "XDG_CACHE_HOME" in str(error.value)
    assert paths.cache_folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/matrix-runner")
    assert paths.cache_folder({"HOME": "/h", "XDG_CACHE_HOME": "relative"}) == Path("/h/.cache/matrix-runner")
