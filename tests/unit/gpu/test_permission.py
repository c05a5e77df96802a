"""Who may start the guardian as root: sudo is tried only where its rule is visible, because it logs what it denies."""

import os
from pathlib import Path

import pytest

from runner.gpu.clocks import lease, permission
from runner.gpu.clocks.permission import allow, may_lock, rule, sudo_usable, sudoers_word
from runner.gpu.clocks.protocol import COMMAND, Order

USER = 1000


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the folder of both rule files; the user is not root, and there is a sudo."""
    monkeypatch.setattr(permission, "SUDOERS", tmp_path / "sudoers.d" / "matrix-runner")
    monkeypatch.setattr(permission, "COPY", tmp_path / "matrix-runner.sudoers")
    monkeypatch.setattr(os, "geteuid", lambda: USER)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sudo").touch(0o755)
    return tmp_path


def test_without_a_rule_sudo_is_not_tried(etc: Path) -> None:
    assert etc.is_dir()
    assert (sudo_usable(), may_lock()) == (False, False)


def test_the_copy_of_the_rule_shows_that_sudo_has_it(etc: Path) -> None:
    permission.COPY.write_text(f"# by the administrator\n{rule(USER)}\n")
    assert (sudo_usable(), may_lock()) == (True, True)
    (etc / "bin" / "sudo").unlink()
    assert not sudo_usable()


@pytest.mark.parametrize("other", ["", "bob ALL=(root) NOPASSWD: /usr/bin/python3 -P -m runner.gpu.clocks.guardian"])
def test_a_rule_of_somebody_else_is_none(etc: Path, other: str) -> None:
    permission.COPY.write_text(other + "\n")
    (etc / "sudoers.d").mkdir()
    permission.SUDOERS.touch()
    assert not sudo_usable()


def test_a_rule_without_a_copy_counts_where_its_file_is_visible(etc: Path) -> None:
    (etc / "sudoers.d").mkdir()
    permission.SUDOERS.touch()
    assert sudo_usable()


def test_a_folder_that_only_root_may_enter_shows_no_rule(etc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stat(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(path))

    assert etc.is_dir()
    monkeypatch.setattr(Path, "stat", stat)
    assert not sudo_usable()


def test_root_needs_no_sudo(etc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    permission.COPY.write_text(rule(USER) + "\n")
    assert etc.is_dir()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert (sudo_usable(), may_lock()) == (False, True)


class RefusedGuard:
    """A guardian whose driver lets only root lock clocks; it keeps the commands that were started."""

    commands: list[tuple[str, ...]]

    def __init__(self, order: Order, command: tuple[str, ...]) -> None:
        """Start nothing."""
        del order
        self.commands.append(command)

    def answer(self, seconds: float) -> dict[str, str]:
        """Return the refusal."""
        del seconds
        return {"said": "refused", "kind": "permission", "why": "the driver lets only root do that"}

    def end(self, seconds: float = 0.0) -> None:
        """End nothing."""


@pytest.mark.parametrize("with_rule", [False, True])
def test_a_lease_starts_sudo_only_with_the_rule(etc: Path, *, with_rule: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert etc.is_dir()
    monkeypatch.setattr(RefusedGuard, "commands", [], raising=False)
    monkeypatch.setattr(lease, "Guard", RefusedGuard)
    if with_rule:
        permission.COPY.write_text(rule(USER) + "\n")
    lease.start_guardian(Order(task="hold", uuid="GPU-0"), pytest.fail)
    assert RefusedGuard.commands == [COMMAND, *([permission.SUDO] if with_rule else [])]


def test_the_command_that_allows_it_can_be_pasted() -> None:
    assert allow(USER) == (
        f"to allow it: echo '{rule(USER)}' | sudo tee -a /etc/sudoers.d/matrix-runner /etc/matrix-runner.sudoers"
    )
    assert "NOPASSWD" not in allow(0)
    assert sudoers_word("/a b/c:d") == "/a\\ b/c\\:d"
