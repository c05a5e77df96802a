"""Two commands at once."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from runner.store.run import runs
from tests.faults.bench import HOST, SMALL, Bench
from tests.faults.declared.pairs import PAIR_FAULTS
from tests.faults.fault import Fault

RUN = ("run", *SMALL, *HOST)
MEASURED = "runner.store.run:append@measured#3"
NIGHT = ("nightly", *SMALL, "np-old", "--backend", "venv", "--budget", "3m")


def run_both(bench: Bench, first: tuple[str, ...], second: tuple[str, ...], waits: str = "", pause: str = "") -> None:
    """Start a command, a second one while the first measures, and hold the second to the declaration."""
    first_process = bench.start(*first, pause=pause or MEASURED)
    bench.paused(first_process)
    second_process = bench.start(*second)
    if waits:
        bench.printed(second_process, waits)
        bench.go_on()
    done = bench.end(second_process)
    bench.check_seen(done)
    bench.go_on()
    bench.end(first_process)
    assert first_process.returncode == 0
    bench.check_cleaned()
    bench.check_kept()


def two_runs(bench: Bench) -> None:
    run_both(bench, RUN, RUN, "another runner measures on this machine")
    assert len(runs(bench.reports)) == 2
    for run in runs(bench.reports):
        bench.check_complete(run)


def resume_beside(bench: Bench, unfinished: Path) -> None:
    first: tuple[str, ...] = RUN
    if bench.fault.id == "two-resumes":
        bench.take_over(unfinished)
        first = ("run", "--resume")
    run_both(bench, first, ("run", "--resume"), pause="runner.store.run:append@measured")


def beside_night(bench: Bench) -> None:
    run_both(bench, NIGHT, RUN, "another runner measures on this machine")
    assert len(runs(bench.reports)) == 2
    for run in runs(bench.reports):
        bench.check_complete(run)


def clean_beside(bench: Bench) -> None:
    (bench.cache / "venvs").unlink()
    bench.environment["DOCKER_HOST"] = f"unix://{bench.folder}/none.sock"
    run_both(bench, RUN, ("clean", "--all"))
    assert list((bench.cache / "references").iterdir())


def report_beside(bench: Bench) -> None:
    run_both(bench, RUN, ("report",))


def two_builds(bench: Bench) -> None:
    (bench.cache / "venvs").unlink()
    build = ("build", "np-old", "--backend", "venv")
    pause = "runner.backends.venv:VenvBackend._make"
    run_both(bench, build, build, "np-old: another runner makes this", pause)
    assert len(list((bench.cache / "venvs").glob("np-old-*/.ready"))) == 1


ACTIONS: Mapping[str, Callable[[Bench], None]] = {
    "two-runs": two_runs,
    "run-beside-night": beside_night,
    "clean-beside-run": clean_beside,
    "report-beside-run": report_beside,
    "two-builds": two_builds,
}


@pytest.mark.parametrize("fault", PAIR_FAULTS, ids=lambda fault: fault.id)
def test_two_commands(fault: Fault, bench: Bench, request: pytest.FixtureRequest) -> None:
    if "resume" in fault.id:
        resume_beside(bench, request.getfixturevalue("unfinished"))
    else:
        ACTIONS[fault.id](bench)
