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


def test_the_command_that_allows_it_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permission, "CODE", ())
    assert allow(USER) == (
        f"to allow it: echo '{rule(USER)}' | sudo tee -a /etc/sudoers.d/matrix-runner /etc/matrix-runner.sudoers"
    )
    assert "NOPASSWD" not in allow(0)
    in_job = allow(USER, {"SLURM_JOB_ID": "12"})
    assert in_job == allow(USER).replace("to allow it", "an administrator of the cluster can allow it, on each node")
    assert sudoers_word("/a b/c:d") == "/a\\ b/c\\:d"


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns an interpreter in a folder of root's, which others may read; the tests run as root or as its owner."""
    interpreter = tmp_path / "venv" / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.touch(0o755)
    monkeypatch.setattr(permission, "CODE", (interpreter,))
    return interpreter


OTHER = os.geteuid() + 4711


def test_code_that_only_its_owner_can_write_is_safe(code: Path) -> None:
    assert permission.writable_code(OTHER, groups=()) is None
    assert "careful" not in allow(OTHER)
    assert permission.writable_code(os.geteuid() or OTHER, groups=()) == (code if os.geteuid() else None)


@pytest.mark.parametrize("mode", [0o777, 0o775])
@pytest.mark.parametrize("name", ["venv", "venv/bin", "venv/bin/python"])
def test_the_rule_warns_of_code_that_the_user_can_replace(
    code: Path, tmp_path: Path, name: str, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    writable = tmp_path / name
    writable.chmod(mode)
    assert permission.writable_code(OTHER, groups=[writable.stat().st_gid]) == writable
    monkeypatch.setattr(os, "getgroups", lambda: [writable.stat().st_gid])
    assert allow(OTHER).endswith(
        f"; careful: this rule makes everybody root who can write to {writable}, as you can: {permission.ADVICE}"
    )
    assert code.exists()


def test_a_link_to_the_interpreter_is_followed(code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "python"
    link.symlink_to(code)
    monkeypatch.setattr(permission, "CODE", (link,))
    assert permission.writable_code(OTHER, groups=()) is None
    code.chmod(0o757)
    assert permission.writable_code(OTHER, groups=()) in {link, code}


def test_a_sticky_folder_keeps_what_is_in_it(code: Path, tmp_path: Path) -> None:
    (tmp_path / "venv").chmod(0o1777)
    assert permission.writable_code(OTHER, groups=()) is None
    assert code.exists()
