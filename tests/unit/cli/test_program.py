"""Messages name commands that the shell of the person who started the program can run."""

import sys
from pathlib import Path

import pytest

from runner.cli import console
from runner.cli.program import in_this_shell, started_as
from runner.core.progress import LiveProgress

NOX = ".nox/matrix/bin/runner"


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_program_is_called_as_the_shell_of_the_person_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = executable(tmp_path / NOX)
    monkeypatch.chdir(tmp_path)
    on_path = {"PATH": str(program.parent)}
    assert started_as(str(program), on_path) == ["runner"]
    assert started_as(str(program), {**on_path, "NOX_CURRENT_SESSION": "matrix"}) == [NOX]
    assert started_as(str(program), {"PATH": ""}) == [NOX]
    assert started_as("", {"PATH": ""}) == ["runner"]
    assert started_as("-c", {"PATH": ""}) == ["runner"]
    assert started_as(str(executable(tmp_path / "runner")), on_path) == ["./runner"], "the shell knows another one"


def test_a_module_is_started_by_the_same_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = executable(tmp_path / ".venv" / "bin" / "python")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(python))
    module = "/elsewhere/runner/__main__.py"
    assert started_as(module, {"PATH": str(python.parent)}) == ["python", "-m", "runner"]
    assert started_as(module, {"PATH": ""}) == [".venv/bin/python", "-m", "runner"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("`runner run --resume A` continues it", f"`{NOX} run --resume A` continues it"),
        ("next: runner open A", f"next: {NOX} open A"),
        ("a quieter machine (runner tune) would help", f"a quieter machine ({NOX} tune) would help"),
        ("hint: `runner plan` first, then `runner run`", f"hint: `{NOX} plan` first, then `{NOX} run`"),
    ],
)
def test_every_command_of_a_message_gets_the_words_that_start_the_program(text: str, shown: str) -> None:
    assert in_this_shell(text, [NOX]) == shown
    assert in_this_shell(shown, [NOX]) == shown
    module = in_this_shell(text, ["python", "-m", "runner"])
    assert "`runner" not in module
    assert in_this_shell(module, ["python", "-m", "runner"]) == module


@pytest.mark.parametrize(
    "text",
    [
        "this is a bug in runner: please report it",
        "reports/runner run is no folder of this runner",
        "start one with `runner worker ADDRESS` on each host",
        "held on another machine by A: run `runner clocks` there",
        "`sudo /usr/bin/python -P -m runner clocks reset`",
    ],
)
def test_other_words_and_commands_for_other_hosts_stay(text: str) -> None:
    assert in_this_shell(text, [NOX]) == text


def test_notes_and_the_live_display_name_the_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "_started_as", [NOX])
    console.note("`runner run --resume A` continues it")
    assert capsys.readouterr().err == f"`{NOX} run --resume A` continues it\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    progress = console.progress()
    assert isinstance(progress, LiveProgress)
    progress.note("`runner run --resume A` continues it")
    assert capsys.readouterr().err == f"`{NOX} run --resume A` continues it\n"


def test_a_file_and_json_name_the_command_as_documents_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    class Next:
        def text(self, width: int, *, colour: bool) -> str:  # noqa: ARG002
            return "next: runner open A"

        def json(self) -> dict[str, object]:
            return {"next": "runner open A"}

    monkeypatch.setattr(console, "_started_as", [NOX])
    console.show(Next(), "table", None)
    assert capsys.readouterr().out == f"next: {NOX} open A\n"
    console.show(Next(), "json", None)
    assert '"next": "runner open A"' in capsys.readouterr().out
    console.show(Next(), "table", tmp_path / "next.txt")
    assert (tmp_path / "next.txt").read_text() == "next: runner open A\n"
