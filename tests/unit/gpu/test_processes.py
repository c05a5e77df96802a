"""What is shown of the processes that compute on a GPU."""

import os
import pwd
from pathlib import Path

import pytest

from runner.gpu.processes import HOST_NAMESPACE, describe, sentence


def proc(folder: Path, namespace: str = HOST_NAMESPACE) -> Path:
    """Return a /proc with the process 4711, seen from a namespace of process numbers."""
    (folder / "self" / "ns").mkdir(parents=True)
    (folder / "self" / "ns" / "pid").symlink_to(namespace)
    (folder / "4711").mkdir()
    (folder / "4711" / "comm").write_text("python3\n")
    return folder


def test_a_process_has_its_name_and_its_user(tmp_path: Path) -> None:
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert describe([4711, 12], proc(tmp_path)) == (f"4711 (python3 of {user})", "12")


def test_a_user_without_a_name_is_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(user: int) -> pwd.struct_passwd:
        raise KeyError(user)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert describe([4711], proc(tmp_path)) == (f"4711 (python3 of #{tmp_path.stat().st_uid})",)


def test_in_a_container_numbers_of_the_host_get_no_names(tmp_path: Path) -> None:
    assert describe([4711], proc(tmp_path, "pid:[4026532201]")) == ("4711",)
    assert describe([4711], tmp_path / "nothing") == ("4711",)


def test_processes_are_the_subject_of_a_sentence() -> None:
    assert sentence(["1"]) == "process 1 computes"
    assert sentence(["1", "2"]) == "processes 1 and 2 compute"
