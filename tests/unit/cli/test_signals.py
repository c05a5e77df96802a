"""Signals that are no Ctrl-C, because OpenBLAS raises them where it cannot start threads; and signals that wait."""

import signal
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from runner.cli import signals
from runner.core.uninterrupted import uninterrupted


def test_a_ctrl_c_is_no_lack_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _starved(monkeypatch, signal.SIGINT) is False


def test_an_interrupt_while_no_thread_can_start_is_a_lack_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: object) -> None:
        message = "can't start new thread"
        raise RuntimeError(message)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert _starved(monkeypatch, signal.SIGINT) is True
    assert _starved(monkeypatch, signal.SIGTERM) is False


def test_a_signal_waits_for_the_end_of_a_step_that_it_may_not_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[float] = []
    monkeypatch.setattr(signals, "_received", [])
    monkeypatch.setattr(signals, "_received_at", [])
    monkeypatch.setattr(signals, "_starved", [])
    monkeypatch.setattr(signals, "ignore", lambda: None)
    monkeypatch.setattr(signal, "setitimer", lambda _timer, seconds: timers.append(seconds))
    with uninterrupted():
        signals._interrupt(signal.SIGHUP, None)
    assert timers == [signals.RETRY_SECONDS]
    with pytest.raises(signals.Interrupted):
        signals._interrupt(signal.SIGALRM, None)
    assert signals.exit_code() == signals.HUNG_UP


MODULE = """\
import signal

class Field:
    def __set_name__(self, _owner, _name):
        signal.raise_signal(signal.SIGTERM)

class Fields:
    field = Field()

is_complete = True
"""


@pytest.fixture
def handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Handle signals as the command line does, and put back the handlers of the tests."""
    for name in ("_received", "_received_at", "_starved"):
        monkeypatch.setattr(signals, name, [])
    before = {number: signal.getsignal(number) for number in signals.STOP}
    signals.listen()
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
def test_a_signal_waits_for_the_end_of_an_import(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "interrupted_import.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(signals.Interrupted):
        import_and_wait("interrupted_import")
    assert sys.modules.pop("interrupted_import").is_complete
    assert signals.exit_code() == signals.INTERRUPTED


@pytest.mark.usefixtures("handlers")
def test_an_import_that_does_not_end_is_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "endless_import.py").write_text(
        "import signal\nsignal.raise_signal(signal.SIGTERM)\nwhile True: pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(signals, "IMPORT_SECONDS", 0.05)
    with pytest.raises(signals.Interrupted):
        import_module("endless_import")
    assert "endless_import" not in sys.modules


def import_and_wait(name: str) -> None:
    """Import a module, and wait until a signal that came meanwhile is raised."""
    import_module(name)
    while True:
        signal.pause()


def _starved(monkeypatch: pytest.MonkeyPatch, number: int) -> bool:
    """Return what a signal leaves behind; its handlers and notes are those of this test."""
    monkeypatch.setattr(signals, "_received", [])
    monkeypatch.setattr(signals, "_received_at", [])
    monkeypatch.setattr(signals, "_starved", [])
    monkeypatch.setattr(signals, "ignore", lambda: None)
    with pytest.raises(signals.Interrupted):
        signals._interrupt(number, None)
    return signals.is_starved()
