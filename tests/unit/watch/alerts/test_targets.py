"""Where addresses for alerts may come from, and that no message has one."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.core.errors import UsageError
from runner.watch.alerts import targets_of_night
from runner.watch.alerts.targets import MAX_TARGETS, read_targets, targets_file

SECRET = "n0bodymayread"
SLACK, MAIL = f"slack://{SECRET}/a/b", f"mailtos://ann:{SECRET}@mail.example?to=team@example.org"


def private(path: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    """Write a file of addresses; return the environment that names it."""
    path.write_text(text)
    path.chmod(mode)
    return {"MATRIX_RUNNER_ALERTS_FILE": str(path)}


def test_the_variable_has_addresses_and_leaves_the_environment() -> None:
    environ = {"MATRIX_RUNNER_ALERTS": f" {SLACK}\n{MAIL} ", "PATH": "/bin"}
    targets = read_targets(environ)
    assert [(target.name, target.address) for target in targets] == [("1 slack", SLACK), ("2 mailtos", MAIL)]
    assert environ == {"PATH": "/bin"}
    assert SECRET not in repr(targets)


def test_a_private_file_has_an_address_in_each_line(tmp_path: Path) -> None:
    text = f"# the team\n\n; and\n  {SLACK}  \nteam, mail = {MAIL}\n"
    targets = read_targets(private(tmp_path / "alerts", text))
    assert [(target.name, target.address) for target in targets] == [("1 slack", SLACK), ("2 mailtos", MAIL)]


def test_the_variable_replaces_the_file(tmp_path: Path) -> None:
    environ = {**private(tmp_path / "alerts", SLACK), "MATRIX_RUNNER_ALERTS": MAIL}
    assert [target.name for target in read_targets(environ)] == ["1 mailtos"]


@pytest.mark.parametrize("environ", [{}, {"MATRIX_RUNNER_ALERTS": ""}, {"MATRIX_RUNNER_ALERTS": "  "}])
def test_without_addresses_nobody_gets_alerts(tmp_path: Path, environ: dict[str, str]) -> None:
    assert read_targets({**environ, "HOME": str(tmp_path)}) == ()


def test_the_file_is_in_the_folder_of_settings() -> None:
    assert targets_file({"HOME": "/home/ann"}) == Path("/home/ann/.config/matrix-runner/alerts")
    assert targets_file({"HOME": "/home/ann", "XDG_CONFIG_HOME": "/c"}) == Path("/c/matrix-runner/alerts")
    assert targets_file({"HOME": "/home/ann", "MATRIX_RUNNER_ALERTS_FILE": "/f"}) == Path("/f")


@pytest.mark.parametrize("mode", [0o604, 0o620, 0o640, 0o644, 0o601])
def test_a_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    environ = private(tmp_path / "alerts", SLACK, mode)
    with pytest.raises(UsageError, match=rf"its mode is {mode:04o}, so that others may use it") as refused:
        read_targets(environ)
    assert f"`chmod 600 {tmp_path}/alerts`" in str(refused.value)
    assert SECRET not in str(refused.value)


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = private(tmp_path / "alerts", SLACK)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(UsageError, match="it belongs to another user"):
        read_targets(environ)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (f"{SECRET}\n", "line 1 of .*/alerts is no address"),
        (f"{SLACK}\ninclude /etc/{SECRET}\n", "line 2 of .*/alerts is no address"),
        ("".join(f"{SLACK}\n" for _ in range(MAX_TARGETS + 1)), "has 21 addresses, and at most 20 get alerts"),
        (f"{SLACK}\n" * 5000, "it is larger than"),
    ],
)
def test_a_mistake_in_a_file_has_its_line_and_not_its_text(tmp_path: Path, text: str, mistake: str) -> None:
    with pytest.raises(UsageError, match=mistake) as refused:
        read_targets(private(tmp_path / "alerts", text))
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("make", [lambda path: os.mkfifo(path, 0o600), lambda path: path.mkdir(0o700), None])
def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path, make: Callable[[Path], None] | None) -> None:
    path = tmp_path / "alerts"
    if make:
        make(path)
    with pytest.raises(UsageError, match="cannot be used"):
        read_targets({"MATRIX_RUNNER_ALERTS_FILE": str(path)})


def test_bytes_that_are_no_text_are_refused_without_showing_them(tmp_path: Path) -> None:
    (tmp_path / "alerts").write_bytes(SECRET.encode() + b"\xff")
    (tmp_path / "alerts").chmod(0o600)
    with pytest.raises(UsageError, match="it is not UTF-8") as refused:
        read_targets({"MATRIX_RUNNER_ALERTS_FILE": str(tmp_path / "alerts")})
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_a_night_whose_addresses_cannot_be_read_says_so_and_goes_on(tmp_path: Path) -> None:
    notes: list[str] = []
    environ = private(tmp_path / "alerts", SLACK, 0o644)
    assert targets_of_night(environ, notes.append) == ()
    (note,) = notes
    assert note.startswith(f"no alerts will be sent: the addresses for alerts in {tmp_path}/alerts cannot be used: ")
