"""Whether a process still runs, by its identity."""

import os

import pytest

from runner.core import processes
from runner.core.processes import identity, is_gone


def test_only_a_dead_process_of_this_host_and_boot_is_gone() -> None:
    host, boot, _, started = identity().split(":")
    assert not is_gone(identity())
    assert not is_gone(f"{identity()}:token")
    assert is_gone(f"{host}:{boot}:{os.getpid()}:{int(started) + 1}")
    assert is_gone(f"{host}:{boot}:4194305:1")
    for text in (f"other:{boot}:4194305:1", f"{host}:other:4194305:1", f"{host}:{boot}:x:1", "", f"{host}:{boot}:²:1"):
        assert not is_gone(text)


def test_a_process_that_proc_hides_from_this_user_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    host, boot, _, _ = identity().split(":")

    def refuse(_pid: int, _number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(processes, "started", lambda _pid: "")  # as /proc that is mounted with hidepid=2
    monkeypatch.setattr(os, "kill", refuse)
    assert not is_gone(f"{host}:{boot}:4711:1")
