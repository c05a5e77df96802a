"""The progress of long work: not too many lines, and the remaining time."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from runner.core.progress import MAX_QUIET_SECONDS, QUIET_SECONDS, WIDTH, LiveProgress, Progress


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class _Watched(Console):
    """A console that remembers whether the progress held its lock while it printed."""

    def __init__(self) -> None:
        super().__init__(file=io.StringIO(), width=60, record=True, force_terminal=False)
        self.locked: Callable[[], bool] = lambda: False
        self.seen: list[bool] = []

    def print(self, *objects: Any, **options: Any) -> None:
        self.seen.append(self.locked())
        super().print(*objects, **options)


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


def plain(clock: _Clock) -> tuple[Progress, list[str]]:
    lines: list[str] = []
    return Progress(lines.append, clock), lines


def drawn(progress: LiveProgress) -> list[str]:
    console = Console(file=io.StringIO(), width=60, record=True)
    console.print(progress.table())
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_notes_are_never_dropped(clock: _Clock) -> None:
    progress, lines = plain(clock)
    with progress:
        progress.note("one")
        progress.note("one")
    assert lines == ["one", "one"]


def test_a_status_is_written_at_once_and_then_less_and_less_often(clock: _Clock) -> None:
    progress, lines = plain(clock)
    for number in range(200):
        progress.status("torch-1.0", f"{number} MB")
        clock.now += 1.0
    assert lines == [f"torch-1.0: {number} MB" for number in (0, 10, 30, 70, 130, 190)]
    assert (QUIET_SECONDS, MAX_QUIET_SECONDS) == (10.0, 60.0)


def test_all_rows_share_the_interval_and_the_estimate(clock: _Clock) -> None:
    progress, lines = plain(clock)
    progress.status("a", "starts")
    progress.status("b", "starts")
    progress.begin(4, 40.0)
    progress.status("now", "round 1")
    progress.advance(10.0, "cell")
    clock.now += 10.0
    progress.status("now", "round 2")
    assert lines == ["a: starts", "measured 0/4, 40 s left; now: round 1", "measured 1/4, 10 s left; now: round 2"]


def test_a_note_does_not_silence_a_status(clock: _Clock) -> None:
    progress, lines = plain(clock)
    progress.note("a: x")
    progress.status("a", "y")
    assert lines == ["a: x", "a: y"]


def test_a_long_status_is_cut_and_a_long_note_is_not(clock: _Clock) -> None:
    progress, lines = plain(clock)
    progress.status("a", f"begin{'x' * 500}end")
    progress.note("y" * 500)
    assert [len(line) for line in lines] == [WIDTH, 500]
    assert lines[0].startswith("a: begin")
    assert lines[0].endswith("end")


def test_remaining_time_is_the_estimate_before_the_first_measurement(clock: _Clock) -> None:
    progress, _ = plain(clock)
    progress.begin(4, 40.0)
    assert progress.remaining_seconds() == 40.0


def test_remaining_time_is_scaled_by_the_error_of_the_estimate(clock: _Clock) -> None:
    progress, lines = plain(clock)
    progress.begin(4, 40.0)
    clock.now += 30.0
    progress.advance(10.0, "torch-1.0/nn-lstm")
    assert progress.remaining_seconds() == 60.0
    assert lines == ["measured 1/4, 1 min 00 s left; last: torch-1.0/nn-lstm"]
    clock.now += 5.0
    progress.advance(25.0, "b")
    assert progress.remaining_seconds() == pytest.approx(5.0)


def test_what_is_expected_from_measurements_replaces_the_estimate(clock: _Clock) -> None:
    progress, _ = plain(clock)
    progress.begin(4, 40.0)
    clock.now += 300.0
    progress.advance(10.0, "a")
    progress.expect(60.0)
    assert (progress.remaining_seconds(), progress.completed) == (60.0, 1)
    clock.now += 20.0
    progress.advance(20.0, "b")
    assert progress.remaining_seconds() == pytest.approx(40.0)


def test_remaining_time_never_rises_between_measurements_and_falls_by_at_most_one_of_them(clock: _Clock) -> None:
    progress, _ = plain(clock)
    progress.begin(4, 40.0)
    clock.now += 10.0
    progress.advance(10.0, "a")
    shown = []
    for _ in range(4):
        shown.append(progress.remaining_seconds())
        clock.now += 4.0
    assert shown == [30.0, 26.0, 22.0, 20.0]
    progress.extend(1, 10.0)
    assert progress.remaining_seconds() > 40.0


def test_remaining_time_is_zero_at_the_end_of_a_run_that_took_longer(clock: _Clock) -> None:
    progress, _ = plain(clock)
    progress.begin(1, 10.0)
    clock.now += 1000.0
    progress.advance(12.0, "a")
    assert progress.remaining_seconds() == 0.0


def test_begin_resets_the_count_and_the_clock(clock: _Clock) -> None:
    progress, lines = plain(clock)
    progress.begin(1, 1.0)
    clock.now += 50.0
    progress.advance(1.0, "a")
    clock.now += 50.0
    progress.begin(2, 8.0)
    clock.now += 4.0
    progress.advance(4.0, "b")
    assert lines[-1] == "measured 1/2, 4 s left; last: b"


def test_the_table_has_one_row_for_each_name(clock: _Clock) -> None:
    progress = LiveProgress(_Watched(), clock)
    progress.status("torch-1.0", "downloading 10 MB")
    progress.status("tf-1.8", "unpacking")
    progress.status("torch-1.0", "downloading 20 MB")
    assert drawn(progress) == ["torch-1.0 downloading 20 MB", "tf-1.8    unpacking"]


def test_finish_removes_a_row_and_leaves_the_others(clock: _Clock) -> None:
    progress = LiveProgress(_Watched(), clock)
    progress.status("a", "works")
    progress.status("b", "works")
    progress.finish("a")
    progress.finish("a")
    assert drawn(progress) == ["b works"]


def test_finish_writes_no_line(clock: _Clock) -> None:
    progress, lines = plain(clock)
    progress.finish("a")
    assert lines == []


def test_a_row_that_is_too_long_is_cut_with_dots(clock: _Clock) -> None:
    progress = LiveProgress(_Watched(), clock)
    progress.status("a", "x" * 200)
    (line,) = drawn(progress)
    assert len(line) == 60
    assert line.endswith("…")


def test_the_table_has_a_bar_with_the_count_and_the_remaining_time(clock: _Clock) -> None:
    progress = LiveProgress(_Watched(), clock)
    assert drawn(progress) == []
    progress.begin(4, 40.0)
    clock.now += 5.0
    progress.advance(10.0, "cell")
    rows = drawn(progress)
    assert rows[0].split() == ["last", "cell"]
    assert rows[-1].startswith("measured 1/4, 22 s left ")
    assert "━" in rows[-1]


def test_notes_are_printed_without_markup(clock: _Clock) -> None:
    console = _Watched()
    with LiveProgress(console, clock) as progress:
        progress.note("torch-1.0: [red]not markup[/red] 3.5")
    assert console.export_text().startswith("torch-1.0: [red]not markup[/red] 3.5\n")


def test_a_note_is_printed_without_holding_the_lock(clock: _Clock) -> None:
    """The console locks itself and then calls table(), which takes our lock: holding it here would deadlock."""
    console = _Watched()
    progress = LiveProgress(console, clock)
    console.locked = progress.lock.locked
    progress.note("one")
    assert console.seen == [False]


def test_drawing_stops_after_an_error(clock: _Clock) -> None:
    progress = LiveProgress(_Watched(), clock)
    with pytest.raises(KeyboardInterrupt), progress:
        raise KeyboardInterrupt
    assert not progress.live.is_started
