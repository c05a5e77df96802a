"""Signals that are no Ctrl-C, because OpenBLAS raises them where it cannot start threads; and signals that wait."""

import signal
import threading

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
    monkeypatch.setattr(signals, "_starved", [])
    monkeypatch.setattr(signals, "ignore", lambda: None)
    monkeypatch.setattr(signal, "setitimer", lambda _timer, seconds: timers.append(seconds))
    with uninterrupted():
        signals._interrupt(signal.SIGHUP, None)
    assert timers == [signals.RETRY_SECONDS]
    with pytest.raises(signals.Interrupted):
        signals._interrupt(signal.SIGALRM, None)
    assert signals.exit_code() == signals.HUNG_UP


def _starved(monkeypatch: pytest.MonkeyPatch, number: int) -> bool:
    """Return what a signal leaves behind; its handlers and notes are those of this test."""
    monkeypatch.setattr(signals, "_received", [])
    monkeypatch.setattr(signals, "_starved", [])
    monkeypatch.setattr(signals, "ignore", lambda: None)
    with pytest.raises(signals.Interrupted):
        signals._interrupt(number, None)
    return signals.is_starved()
