"""Where addresses for alerts may come from, that no message has one, and what nights store of them."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.core.errors import UsageError
from runner.watch.alerts import targets_of_night
from runner.watch.alerts.targets import MAX_TARGETS, SALT_BYTES, Receiver, read_targets, salt_file, targets_file

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


def receivers(state: Path, *addresses: str, notes: list[str] | None = None) -> tuple[Receiver, ...]:
    """Return the receivers of a night of the user with this folder of states."""
    environ = {"MATRIX_RUNNER_ALERTS": " ".join(addresses), "XDG_STATE_HOME": str(state)}
    return targets_of_night(environ, print if notes is None else notes.append)


def test_a_receiver_keeps_its_key_when_others_come_and_go(tmp_path: Path) -> None:
    _, mail = receivers(tmp_path, SLACK, MAIL)
    (alone,) = receivers(tmp_path, MAIL)
    assert (mail.name, alone.name) == ("2 mailtos", "1 mailtos")
    assert mail.key == alone.key
    assert mail.key.startswith("mailtos ")
    assert receivers(tmp_path, SLACK)[0].key != receivers(tmp_path, f"{SLACK}/c")[0].key


def test_a_key_does_not_tell_whether_a_guess_of_the_address_is_right(tmp_path: Path) -> None:
    (target,) = receivers(tmp_path / "ann", SLACK)
    (guess,) = receivers(tmp_path / "eve", SLACK)
    assert target.key != guess.key
    assert hashlib.sha256(SLACK.encode()).hexdigest()[:8] not in target.key


def test_the_salt_is_private_and_made_once(tmp_path: Path) -> None:
    (target,) = receivers(tmp_path, SLACK)
    path = salt_file({"XDG_STATE_HOME": str(tmp_path)})
    assert path == tmp_path / "matrix-runner" / "alerts.salt"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes() == target.salt
    assert len(target.salt) == SALT_BYTES
    assert [*path.parent.iterdir()] == [path]
    assert repr(target.salt) not in repr(target)


def test_without_receivers_there_is_no_salt(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    assert targets_of_night(environ, print) == ()
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("content", "mode", "reason"),
    [
        (b"0" * SALT_BYTES, 0o644, "its mode is 0644, so that others may use it"),
        (b"", 0o600, "it is damaged: remove it"),
    ],
)
def test_where_no_salt_can_be_kept_receivers_are_stored_by_number(
    tmp_path: Path, content: bytes, mode: int, reason: str
) -> None:
    path = salt_file({"XDG_STATE_HOME": str(tmp_path)})
    path.parent.mkdir()
    path.write_bytes(content)
    path.chmod(mode)
    notes: list[str] = []
    assert [target.key for target in receivers(tmp_path, SLACK, MAIL, notes=notes)] == ["1 slack", "2 mailtos"]
    (note,) = notes
    assert note.endswith(f"because no salt can be kept: {path}: {reason}")


def test_keys_of_nights_before_the_salt_are_recognised(tmp_path: Path) -> None:
    (target,) = receivers(tmp_path, SLACK)
    assert target.is_stored_as(target.key)
    assert target.is_stored_as(f"slack {hashlib.sha256(SLACK.encode()).hexdigest()[:8]}")
    assert not target.is_stored_as(f"slack {hashlib.sha256(MAIL.encode()).hexdigest()[:8]}")
