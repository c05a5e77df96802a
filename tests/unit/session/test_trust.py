"""What a stored run would start is said, and starts only where it was started here or is trusted."""

from dataclasses import replace
from pathlib import Path

import pytest

from runner.core.errors import UsageError
from runner.session.trust import require_trust, what_starts
from runner.store.header import header_of
from runner.store.run import Run
from runner.store.started import note_started
from tests.unit.search.reproduce.test_reproduce import NEW, OLD, run_in

NAMES = ("torch-1.0", "torch-2.x", "torch-2.x@twin")


def messages_of(run: Run, *, trust: bool) -> list[str]:
    """Return what was said before anything starts."""
    lines: list[str] = []
    require_trust(run, header_of(run.journal().header), NAMES, lines.append, trust=trust)
    return lines


def test_a_run_that_was_started_here_needs_no_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    run = run_in(tmp_path / "reports", OLD, NEW)
    note_started(run)
    assert messages_of(run, trust=False) == messages_of(run, trust=True) == []


def test_a_run_of_somebody_else_starts_nothing_and_says_what_it_would_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    run = run_in(tmp_path / "reports", OLD, NEW)
    with pytest.raises(UsageError) as caught:
        messages_of(run, trust=False)
    message, starts = caught.value.problems
    assert "was not started here by you" in message.message
    assert "the environment torch-1.0 as you, with your files and your network" in starts.message
    assert starts.hint == "if you trust all of that, repeat the command with `--trust`"
    lines = messages_of(run, trust=True)
    assert lines[0] == f"run {run.id} was not started here, and is trusted: it starts"
    assert any("torch-2.x" in line for line in lines)


def test_interpreter_variables_and_networks_are_named_as_printable_text(tmp_path: Path) -> None:
    run = run_in(tmp_path, OLD)
    run.write_environments({"torch-1.0": {"env": {"LD_PRELOAD": "/tmp/x\x1b[2J.so"}}})
    header = replace(header_of(run.journal().header), backend="host", python="/run/logs/evil\n.sh")
    sentences = list(what_starts(run, header, ("torch-1.0",)))
    assert sentences[0].startswith("the interpreter /run/logs/evil .sh as you")
    assert "the variables LD_PRELOAD=/tmp/x\\x1b[2J.so" in sentences
    assert sentences[-1] == "what the matrix file matrix.yaml names"


def test_interpreters_and_images_as_they_are_are_named_by_what_starts(tmp_path: Path) -> None:
    run = run_in(tmp_path, OLD)
    as_is = {"torch-1.0": "python:~/evil\n/python", "unused": "python:/no"}
    header = replace(header_of(run.journal().header), backend="venv", as_is=as_is)
    sentences = list(what_starts(run, header, ("torch-1.0@env:A=1",)))
    assert sentences[0] == "the interpreter ~/evil /python as you, with your files and your network, as torch-1.0"
    of_image = replace(header, backend="docker", as_is={"torch-1.0": "image:team/net:2"})
    expected = "the image team/net:2 in containers without a network, as torch-1.0"
    assert next(what_starts(run, of_image, ("torch-1.0",))) == expected


@pytest.mark.parametrize(("backend", "where"), [("docker", "in containers without a network"), ("venv", "as you")])
def test_where_an_environment_starts_is_said(backend: str, where: str, tmp_path: Path) -> None:
    run = run_in(tmp_path, OLD)
    header = replace(header_of(run.journal().header), backend=backend)
    assert f"the environment torch-1.0 {where}" in next(what_starts(run, header, ("torch-1.0",)))
