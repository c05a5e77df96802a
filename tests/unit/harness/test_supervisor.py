"""A child that the kernel refuses to start, and the names of signals."""

import io
import os
import signal
from pathlib import Path
from typing import NoReturn

import pytest

from runner.harness import supervisor


def test_refused_fork_leaves_no_pipe_and_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> NoReturn:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(BlockingIOError):
        supervisor.ChildSupervisor(lambda _: {}, -1, io.BytesIO())
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(("number", "name"), [(signal.SIGSEGV, "SIGSEGV"), (40, "40"), (64, "SIGRTMAX")])
def test_signal_has_a_name_even_where_python_has_none(number: int, name: str) -> None:
    assert supervisor.signal_name(number) == name
