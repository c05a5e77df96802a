"""A run waits while other programs keep the machine busy: what it says, how long, and when it does not."""

import pytest

from runner.core.busy import Busy, OtherPrograms
from runner.core.progress import Progress
from runner.session.execution.quiet import WATCH_SECONDS, Watch, named, observe, wait_until_quiet

BUSY = "other programs keep 1.0 of 2 CPUs busy: cc1 (pid 17) at 97 % of a CPU"
COMPILER = (Busy("cc1", 17, 0.97),)


class Machine:
    """A machine on which others keep so many CPUs busy in each second; the last number lasts."""

    def __init__(self, *loads: float | None, cpus: int = 2) -> None:
        """Begin at time 0."""
        self.loads, self.cpus = list(loads), cpus
        self.now = 0.0

    def observe(self, seconds: float) -> OtherPrograms | None:
        """Return the load of the next seconds."""
        self.now += seconds
        load = self.loads.pop(0) if len(self.loads) > 1 else self.loads[0]
        return None if load is None else OtherPrograms(load, COMPILER if load > 0.5 else ())

    def watch(self) -> Watch:
        """Return a watch on this machine."""
        return Watch(cpus=self.cpus, observe=self.observe, clock=lambda: self.now)


def waited(machine: Machine, limit: float = 60.0) -> tuple[bool, float, list[str]]:
    """Return whether the machine became quiet, how long that took, and the lines that were shown."""
    lines: list[str] = []
    progress = Progress(lines.append, clock=lambda: machine.now)
    is_quiet = wait_until_quiet(limit, progress, machine.watch())
    return is_quiet, machine.now, lines


@pytest.mark.parametrize("load", [0.0, 0.2, 0.3])
def test_a_quiet_machine_takes_a_second_and_no_word(load: float) -> None:
    assert waited(Machine(load)) == (True, WATCH_SECONDS, [])


def test_a_busy_second_is_the_end_of_a_build() -> None:
    assert waited(Machine(1.8, 0.1)) == (True, 2 * WATCH_SECONDS, [])


def test_two_busy_seconds_are_named_and_waited_for() -> None:
    is_quiet, seconds, lines = waited(Machine(1.0, 1.0, 1.0, 1.0, 0.0))
    assert (is_quiet, seconds) == (True, 5 * WATCH_SECONDS)
    assert lines == [f"waiting up to 1 min 00 s for a quiet machine: {BUSY}; --busy-ok starts at once"]


def test_a_machine_that_stays_busy_is_measured_with_a_warning() -> None:
    is_quiet, seconds, lines = waited(Machine(1.0))
    assert (is_quiet, seconds) == (False, 60.0)
    assert (
        lines[1]
        == f"warning: {BUSY} after 1 min 00 s; measuring anyway; `runner check` shows how far to trust the numbers"
    )


@pytest.mark.parametrize(("load", "cpus", "seconds"), [(0.31, 2, 60.0), (1.5, 16, 1.0), (1.7, 16, 60.0)])
def test_the_limit_depends_on_the_machine(load: float, cpus: int, seconds: float) -> None:
    assert waited(Machine(load, cpus=cpus))[1] == seconds


def test_a_load_without_a_process_to_name() -> None:
    (line, _) = waited(Machine(0.4), 5.0)[2]
    assert line.startswith("waiting up to 5 s for a quiet machine: other programs keep 0.4 of 2 CPUs busy; ")


def test_a_machine_that_shows_nothing_is_not_waited_for() -> None:
    assert waited(Machine(None)) == (True, WATCH_SECONDS, [])


def test_without_a_limit_nobody_looks() -> None:
    assert waited(Machine(2.0), 0.0) == (True, 0.0, [])


def test_several_processes_are_named() -> None:
    assert named((*COMPILER, Busy("ld", 4, 0.5))) == "cc1 (pid 17) at 97 % of a CPU, ld (pid 4) at 50 %"


def test_this_machine_can_be_observed() -> None:
    others = observe(0.05)
    assert others is None or others.cpus >= 0
