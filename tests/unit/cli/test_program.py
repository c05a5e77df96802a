"""Messages name commands that the shell of the person who started the program can run."""

import re
import sys
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

from runner import cli
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


def test_an_interpreter_of_a_virtual_environment_is_not_the_one_that_it_links_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_system = executable(tmp_path / "usr" / "bin" / "python3")
    python = tmp_path / ".venv" / "bin" / "python3"
    python.parent.mkdir(parents=True)
    python.symlink_to(of_system)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(python))
    module = "/elsewhere/runner/__main__.py"
    assert started_as(module, {"PATH": str(of_system.parent)}) == [".venv/bin/python3", "-m", "runner"]
    activated = f"{tmp_path}/usr/../.venv/bin:{of_system.parent}"
    assert started_as(module, {"PATH": activated}) == ["python3", "-m", "runner"]


def test_a_script_is_the_one_that_a_link_on_the_path_leads_to(tmp_path: Path) -> None:
    script = executable(tmp_path / "venvs" / "matrix-runner" / "bin" / "runner")
    link = tmp_path / "bin" / "runner"
    link.parent.mkdir()
    link.symlink_to(script)
    assert started_as(str(script), {"PATH": str(link.parent)}) == ["runner"]


def test_a_deleted_working_folder_leaves_the_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = executable(tmp_path / NOX)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert started_as(str(program), {"PATH": ""}) == [str(program)]
    assert started_as("runner", {"PATH": ""}) == ["runner"]


def test_a_program_that_is_gone_while_it_is_compared_leaves_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanished(*_: object) -> bool:
        raise FileNotFoundError

    program = executable(tmp_path / NOX)
    monkeypatch.setattr(Path, "samefile", vanished)
    assert started_as(str(program), {"PATH": str(program.parent)}) == [str(program)]


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


@pytest.mark.parametrize("width", range(20, 121))
def test_a_command_is_replaced_once_wherever_the_layout_breaks_it(width: int) -> None:
    def filled(text: str) -> str:
        return textwrap.fill(text, width, break_on_hyphens=False, break_long_words=False)

    module, advice = ["python", "-m", "runner"], "a quieter machine: `runner tune` shows it, and then `runner run A`"
    once = in_this_shell(advice, module)
    assert in_this_shell(filled(once), module) == filled(once)
    assert " ".join(in_this_shell(filled(advice), module).split()) == once
    other_machine = filled("held on another machine by A: run `runner clocks` there, or `runner worker A` on each host")
    assert in_this_shell(other_machine, module) == other_machine


def test_a_command_in_colours_is_replaced_too() -> None:
    assert in_this_shell("next: \x1b[1mrunner run\x1b[0m A", [NOX]) == f"next: \x1b[1m{NOX} run\x1b[0m A"
    broken = "\x1b[2mnext: runner\x1b[0m   \n\x1b[2mrun A\x1b[0m"
    assert in_this_shell(broken, [NOX]) == broken.replace("runner", NOX)


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
    for is_document, shown in ((False, f"next: {NOX} open A\n"), (True, "next: runner open A\n")):
        console.emit("next: runner open A", None, is_document=is_document)
        assert capsys.readouterr().out == shown
    console.show(Next(), "table", tmp_path / "next.txt")
    assert (tmp_path / "next.txt").read_text() == "next: runner open A\n"


def test_the_first_screen_names_commands_that_this_shell_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_started_as", [NOX])
    screen = CliRunner().invoke(cli.app, []).output
    assert re.findall(r"^  (\S+) (run|new|open)\b", screen, re.MULTILINE) == [
        (NOX, command) for command in ("run", "new", "open")
    ]


def test_what_other_programs_read_names_the_command_as_documents_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(console, "_started_as", [NOX])
    monkeypatch.chdir(tmp_path)
    schema = CliRunner().invoke(cli.app, ["schema"])
    assert schema.exit_code == 0
    assert NOX not in schema.output
