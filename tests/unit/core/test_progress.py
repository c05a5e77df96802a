"""What is said while work goes on: seldom enough to read, and with the time that is left."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from runner.core.progress import QUIET_SECONDS, WIDTH, LiveProgress, Progress
from runner.core.units import duration, size


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
    said: list[str] = []
    return Progress(said.append, clock), said


def drawn(progress: LiveProgress) -> list[str]:
    console = Console(file=io.StringIO(), width=60, record=True)
    console.print(progress.table())
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_a_note_is_always_said(clock: _Clock) -> None:
    progress, said = plain(clock)
    with progress:
        progress.note("one")
        progress.note("one")
    assert said == ["one", "one"]


def test_a_status_is_said_at_once_and_then_now_and_then(clock: _Clock) -> None:
    progress, said = plain(clock)
    for number in range(25):
        progress.status("torch-1.0", f"{number} MB")
        clock.now += 1.0
    assert said == ["torch-1.0: 0 MB", "torch-1.0: 10 MB", "torch-1.0: 20 MB"]
    assert QUIET_SECONDS == 10.0


def test_each_thing_at_work_has_its_own_turn(clock: _Clock) -> None:
    progress, said = plain(clock)
    progress.status("a", "starts")
    progress.status("b", "starts")
    progress.status("a", "goes on")
    assert said == ["a: starts", "b: starts"]


def test_a_note_does_not_silence_a_status(clock: _Clock) -> None:
    progress, said = plain(clock)
    progress.note("a: x")
    progress.status("a", "y")
    assert said == ["a: x", "a: y"]


def test_a_long_status_is_cut_and_a_long_note_is_not(clock: _Clock) -> None:
    progress, said = plain(clock)
    progress.status("a", "x" * 500)
    progress.note("y" * 500)
    assert [len(line) for line in said] == [WIDTH, 500]


def test_time_left_is_what_was_expected_until_something_was_measured(clock: _Clock) -> None:
    progress, _ = plain(clock)
    progress.begin(4, 40.0)
    assert progress.left() == "40 s"


def test_time_left_follows_how_far_off_the_expectation_was(clock: _Clock) -> None:
    progress, said = plain(clock)
    progress.begin(4, 40.0)
    clock.now += 30.0
    progress.advance(10.0, "torch-1.0/nn-lstm")
    assert progress.left() == "1 min 00 s"
    assert said == ["measured: 1/4, 1 min 00 s left; last: torch-1.0/nn-lstm"]
    clock.now += 5.0
    progress.advance(25.0, "b")
    assert progress.left() == "5 s"


def test_nothing_is_left_at_the_end_even_when_it_took_longer(clock: _Clock) -> None:
    progress, _ = plain(clock)
    progress.begin(1, 10.0)
    clock.now += 1000.0
    progress.advance(12.0, "a")
    assert progress.left() == "0 s"


def test_a_second_beginning_counts_anew(clock: _Clock) -> None:
    progress, said = plain(clock)
    progress.begin(1, 1.0)
    clock.now += 50.0
    progress.advance(1.0, "a")
    clock.now += 50.0
    progress.begin(2, 8.0)
    clock.now += 4.0
    progress.advance(4.0, "b")
    assert said[-1] == "measured: 1/2, 4 s left; last: b"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (9.2, "9 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (75.0, "1 min 15 s"),
        (3599.6, "1 h 00 min"),
        (7260.0, "2 h 01 min"),
        (90000.0, "25 h 00 min"),
    ],
)
def test_durations_as_a_person_says_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 MB"), (49.4e6, "49 MB"), (592e6, "592 MB"), (1e9, "1.0 GB"), (1.93e9, "1.9 GB"), (107.4e9, "107.4 GB")],
)
def test_sizes_as_a_person_says_them(count: float, text: str) -> None:
    assert size(count) == text


def test_the_table_has_a_row_for_each_thing_at_work(clock: _Clock) -> None:
    progress = LiveProgress(_Watched(), clock)
    progress.status("torch-1.0", "downloading 10 MB")
    progress.status("tf-1.8", "unpacking")
    progress.status("torch-1.0", "downloading 20 MB")
    assert drawn(progress) == ["torch-1.0 downloading 20 MB", "tf-1.8    unpacking"]


@pytest.mark.parametrize("last", ["ready", "failed", ""])
def test_a_row_goes_when_its_work_has_ended(clock: _Clock, last: str) -> None:
    progress = LiveProgress(_Watched(), clock)
    progress.status("a", "works")
    progress.status("b", "works")
    progress.status("a", last)
    assert drawn(progress) == ["b works"]


def test_a_row_that_is_too_long_is_cut_with_dots(clock: _Clock) -> None:
    progress = LiveProgress(_Watched(), clock)
    progress.status("a", "x" * 200)
    (line,) = drawn(progress)
    assert len(line) == 60
    assert line.endswith("…")


def test_measuring_has_a_bar_with_the_count_and_the_time_left(clock: _Clock) -> None:
    progress = LiveProgress(_Watched(), clock)
    assert drawn(progress) == []
    progress.begin(4, 40.0)
    clock.now += 5.0
    progress.advance(10.0, "cell")
    rows = drawn(progress)
    assert rows[0].endswith("1/4, 22 s left; last: cell")
    assert rows[-1].startswith("1/4, 22 s left ")
    assert "━" in rows[-1]


def test_what_was_noted_stays_as_it_was_written(clock: _Clock) -> None:
    console = _Watched()
    with LiveProgress(console, clock) as progress:
        progress.note("torch-1.0: [red]not markup[/red] 3.5")
    assert console.export_text().startswith("torch-1.0: [red]not markup[/red] 3.5\n")


def test_a_note_prints_without_the_lock_that_drawing_takes(clock: _Clock) -> None:
    """The console locks itself and then asks for the table: holding our lock meanwhile would stop both for ever."""
    console = _Watched()
    progress = LiveProgress(console, clock)
    console.locked = progress.lock.locked
    progress.note("one")
    assert console.seen == [False]


def test_drawing_ends_after_an_error(clock: _Clock) -> None:
    progress = LiveProgress(_Watched(), clock)
    with pytest.raises(KeyboardInterrupt), progress:
        raise KeyboardInterrupt
    assert not progress.live.is_started
