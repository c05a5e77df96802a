"""A floating environment whose lock is older than the newest release says so, from an answer that is kept for a day."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runner.matrix import Matrix, parse
from runner.releases import outdated
from runner.releases.outdated import FILE, outdated_notes
from runner.releases.release_files import IndexFile

MATRIX = """\
version: 1
environments:
  torch-2.x: {{framework: torch, release: "2.*", python: "3.11", lock: torch.txt, follow: "torch>=2,<3",
    requirements: ["torch{pin}"]}}
  torch-1.0: {{framework: torch, release: "1.0.0", python: "3.6", lock: torch.txt, requirements: [torch==1.0.0]}}
workloads: {{rnn-step: {{}}}}
"""
LOCK = f"torch==2.13.0+cpu --hash=sha256:{'0' * 64}\n"
FILES = (
    IndexFile("torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl"),
    IndexFile("torch-2.14.1-cp311-cp311-manylinux_2_28_x86_64.whl", requires_python=">=3.10"),
    IndexFile("torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl", yanked="broken"),
    IndexFile("torch-2.16.0-cp312-cp312-manylinux_2_28_x86_64.whl"),
    IndexFile("torch-2.17.0-cp311-cp311-win_amd64.whl"),
    IndexFile("torch-2.18.0-py3-none-any.whl", requires_python=">=3.12"),
    IndexFile("torch-2.19.0rc1-cp311-cp311-manylinux_2_28_x86_64.whl"),
    IndexFile("torch-3.0.0-cp311-cp311-manylinux_2_28_x86_64.whl"),
    IndexFile("torch-2.20.0.tar.gz"),
)
NOTE = "torch-2.x is locked at 2.13.0; 2.14.1 is out: `runner plan torch==2.14.1`"


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The packages that the index is asked for."""
    packages: list[str] = []

    def files_of(package: str, _environ: Mapping[str, str]) -> list[IndexFile]:
        packages.append(package)
        return [*FILES]

    monkeypatch.setattr(outdated, "files_of", files_of)
    return packages


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Says what is outdated in a folder with a lock; an answer is waited for on a busy machine, too."""
    monkeypatch.setattr(outdated, "SECONDS", 60.0)
    (tmp_path / "torch.txt").write_text(LOCK)

    def of(*names: str, pin: str = "==2.13.0", **environ: str) -> list[str]:
        variables = {"XDG_CACHE_HOME": str(tmp_path / "cache"), **environ}
        return outdated_notes(matrix(pin), names, "cpu", tmp_path, tmp_path / "reports", variables)

    return of


def matrix(pin: str) -> Matrix:
    return parse(MATRIX.format(pin=pin).encode(), "matrix.yaml")


def test_a_newer_release_is_named_with_a_command(requested: list[str], notes: Callable[..., list[str]]) -> None:
    assert notes("torch-2.x", "torch-1.0", "torch-2.9.1", "torch-2.x@threads:2") == [NOTE]
    assert requested == ["torch"]


def test_the_command_locks_again_where_the_requirement_allows_the_release(
    requested: list[str], notes: Callable[..., list[str]]
) -> None:
    assert notes("torch-2.x", pin=">=2,<3") == [NOTE.replace("runner plan torch==2.14.1", "runner lock torch-2.x")]


def test_the_index_is_asked_once_a_day(requested: list[str], notes: Callable[..., list[str]], tmp_path: Path) -> None:
    assert notes("torch-2.x") == notes("torch-2.x") == [NOTE]
    assert requested == ["torch"]
    file = tmp_path / "cache" / "matrix-runner" / FILE
    answers = json.loads(file.read_text())
    (answer,) = answers.values()
    answer["requested"] = (datetime.now(UTC) - timedelta(hours=25)).isoformat()
    file.write_text(json.dumps(answers))
    assert notes("torch-2.x") == [NOTE]
    assert requested == ["torch", "torch"]
    file.write_text("[")
    assert notes("torch-2.x") == [NOTE]


@pytest.mark.parametrize("variable", outdated.OFFLINE)
def test_offline_nothing_is_asked_and_what_is_known_is_said(
    requested: list[str], notes: Callable[..., list[str]], variable: str
) -> None:
    assert not notes("torch-2.x", **{variable: "1"})
    assert not requested
    notes("torch-2.x")
    assert notes("torch-2.x", **{variable: "1"}) == [NOTE]


def test_an_index_that_does_not_answer_delays_one_command_a_day(
    notes: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    ended = threading.Event()

    def silent(package: str, _environ: Mapping[str, str]) -> list[IndexFile]:
        calls.append(package)
        ended.wait(60)
        return []

    monkeypatch.setattr(outdated, "files_of", silent)
    monkeypatch.setattr(outdated, "SECONDS", 0.05)
    begin = time.monotonic()
    assert not notes("torch-2.x")
    assert not notes("torch-2.x")
    assert time.monotonic() - begin < 30
    assert calls == ["torch"]
    ended.set()


def test_the_newest_release_and_a_missing_lock_say_nothing(
    requested: list[str], notes: Callable[..., list[str]], tmp_path: Path
) -> None:
    (tmp_path / "torch.txt").write_text(LOCK.replace("2.13.0", "2.14.1"))
    assert not notes("torch-2.x")
    (tmp_path / "torch.txt").unlink()
    assert not notes("torch-2.x")
    assert requested == ["torch"]
