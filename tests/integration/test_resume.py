"""Runs that are killed, or left by their engine, and taken up again: nothing twice, nothing lost, nothing left behind.

``RUNNER_KILLS=20 pytest tests/integration/test_resume.py -s`` kills twenty times and prints what became of it.
"""

import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from runner.core.model import Cell
from runner.store.run import Run
from tests.integration.conftest import Runner, alive, children, containers, journal_of, wait_for
from tests.support.changed_runs import reseal
from tests.support.engine_socket import EngineSocket
from tests.support.needs import slow

KILLS = int(os.environ.get("RUNNER_KILLS", "2"))
SEED = 20261121
ROUNDS = 3
SMALL = ("--device", "cpu", "--threads", "1", "--rounds", str(ROUNDS), "--seconds", "0.05", "--workload", "rnn-step")
BACKENDS = ("venv", pytest.param("docker", marks=(pytest.mark.docker, pytest.mark.slow)))

Round = tuple[str, int]


def folder_of(runner: Runner, reports: str) -> Path | None:
    """Return the folder of the one run below a reports folder, once it is a run."""
    return next((path.parent for path in runner.folder.glob(f"{reports}/runs/[!.]*/plan.json")), None)


def finished(folder: Path) -> set[Round]:
    """Return the rounds of cases that the journal calls finished."""
    return {(line["case"], line["round"]) for line in journal_of(folder) if line["event"] == "round"}


def measured(folder: Path) -> Counter[Round]:
    """Return how many measurements the journal has, by case and round."""
    lines = [line for line in journal_of(folder) if line["event"] == "measured"]
    return Counter((Cell.parse(line["cell"]).case_id, line["round"]) for line in lines)


def elapsed(folder: Path) -> list[float]:
    """Return the elapsed seconds that the journal notes, line by line."""
    return [line["spent"] for line in journal_of(folder) if "spent" in line]


def none_left(run: str) -> bool:
    """Say whether no container of a run is there; other runs have theirs."""
    return not containers(run)


def kill(process: "subprocess.Popen[str]", seconds: float) -> bool:
    """Kill a runner after some seconds, and wait for its servers; False where it had ended before."""
    time.sleep(seconds)
    below = children(process.pid)
    process.kill()
    process.communicate()
    wait_for(lambda: not [pid for pid in below if alive(pid)])
    return process.returncode == -signal.SIGKILL


def timed(runner: Runner, backend: str) -> tuple[float, float]:
    """Return the seconds of an undisturbed run until it is begun, and from then to its end."""
    begin = time.monotonic()
    process = runner.start("run", *SMALL, "--backend", backend, "--reports", "undisturbed")
    wait_for(lambda: folder_of(runner, "undisturbed"))
    start = time.monotonic()
    process.communicate(timeout=300)
    assert process.returncode == 0
    return start - begin, time.monotonic() - start


def check_whole(folder: Path) -> int:
    """Check that each cell counts once in each round, in one attempt; return how many records count."""
    run = Run.open(folder)
    records = list(run.records())
    assert {record.status for record in records} == {"ok"}
    planned = {cell["id"] for cell in run.plan()["cells"] if cell["verdict"] == "run"}
    counted = Counter((record.cell.id, record.round) for record in records)
    assert counted == {(name, number): 1 for name in planned for number in range(1, ROUNDS + 1)}
    attempts: dict[Round, set[int]] = {}
    for record in records:
        attempts.setdefault((record.cell.case_id, record.round), set()).add(record.attempt)
    assert all(len(attempts_of_cell) == 1 for attempts_of_cell in attempts.values())  # pairs are neighbours
    assert run.journal().ended == "done"
    return len(records)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_that_is_killed_at_random_moments_loses_nothing_and_counts_nothing_twice(
    backend: str, runner: Runner
) -> None:
    assert runner("build", *SMALL, "--backend", backend).returncode == 0
    start, work = timed(runner, backend)
    dice = random.Random(SEED)
    kills = runs = counted = again = 0
    while kills < KILLS:
        runs += 1
        reports = f"killed-{runs}"
        process = runner.start("run", *SMALL, "--backend", backend, "--reports", reports)
        folder: Path = wait_for(partial(folder_of, runner, reports))
        pause, kept = dice.uniform(0.0, 0.8 * work), dict[Round, int]()
        while kills < KILLS and kill(process, pause):
            kills += 1
            kept.update({name: measured(folder)[name] for name in finished(folder)})
            process = runner.start("run", "--resume", "--reports", reports)
            pause = dice.uniform(0.0, start + work / 2)  # from its very first moment
        process.communicate(timeout=300)
        done = runner("run", "--resume", folder.name, "--reports", reports)
        assert done.returncode in {0, 3}, done.stderr  # 3: it was finished already
        assert {name: measured(folder)[name] for name in kept} == kept
        records = check_whole(folder)
        counted += records
        again += measured(folder).total() - records
        if backend == "docker":
            wait_for(partial(none_left, folder.name))
    print(f"\n{backend}: {kills} kills in {runs} runs: {counted} records count, {again} were measured again")  # noqa: T201


@pytest.mark.slow
def test_samples_of_a_resumed_run_are_exported_once(runner: Runner) -> None:
    process = runner.start("run", *SMALL, "--backend", "venv")
    wait_for(lambda: len(runner.records()) >= 5)
    assert kill(process, 0.0)
    (run,) = runner.folder.glob("reports/runs/[!.]*")
    in_another_folder = Runner(runner.folder / "another", runner.started)
    in_another_folder.folder.mkdir()
    done = in_another_folder("run", "--resume", str(run))
    assert done.returncode == 0, done.stderr
    assert "resuming run" in done.stderr
    folder = Path(done.stdout.strip()).parent
    assert folder == run
    records = check_whole(folder)
    assert runner("export", "-o", "samples.csv").returncode == 0
    rows = (runner.folder / "samples.csv").read_text().splitlines()[1:]
    assert len(rows) == sum(len(record.seconds) for record in Run.open(folder).records())
    assert len({tuple(row.split(",")[:-1]) for row in rows}) == len(rows)
    compared = runner.json("compare", "np-old", "np-new", "--format", "json")["rows"]
    assert {row["rounds"] for row in compared} == {ROUNDS}
    assert 2 * ROUNDS * len(compared) == records

    done = runner("run", "--resume")
    assert done.returncode == 3
    assert "is unfinished" in done.stderr
    assert runner("run", "--resume", folder.name).returncode == 3


def test_a_run_at_work_is_not_resumed_beside_it(runner: Runner) -> None:
    process = runner.start("run", *SMALL, "--backend", "venv", "--rounds", "100")
    wait_for(runner.records)
    done = runner("run", "--resume")
    assert done.returncode == 2
    assert f"is in use by process {process.pid}" in done.stderr


@pytest.mark.slow
def test_without_a_name_the_run_that_nobody_is_at_work_in_is_resumed(runner: Runner) -> None:
    first = runner.start("run", *SMALL, "--backend", "venv")
    wait_for(lambda: len(runner.records()) >= 3)
    assert kill(first, 0.0)
    (folder,) = runner.folder.glob("reports/runs/[!.]*")
    other = runner.start("run", *SMALL, "--backend", "venv", "--rounds", "100")
    wait_for(lambda: len(list(runner.folder.glob("reports/runs/[!.]*/plan.json"))) == 2)
    again = runner.start("run", "--resume")
    wait_for(lambda: [line for line in journal_of(folder) if line["event"] == "resumed"])
    assert kill(other, 0.0)  # the one that was resumed waits for the machine until then
    _, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    assert f"is in use by process {other.pid}" in err
    check_whole(folder)


@pytest.mark.slow
def test_a_budget_is_that_of_the_whole_run(runner: Runner) -> None:
    process = runner.start("run", *SMALL, "--backend", "venv", "--budget", "1h")
    wait_for(lambda: len(runner.records()) >= 5)
    assert kill(process, 0.0)
    (folder,) = runner.folder.glob("reports/runs/[!.]*")
    first = elapsed(folder)
    assert first
    assert first[-1] > 0
    done = runner("run", "--resume")
    assert done.returncode == 0, done.stderr
    assert "of its 1 h 00 min are used" in done.stderr
    assert elapsed(folder)[len(first)] >= first[-1]
    assert elapsed(folder) == sorted(elapsed(folder))
    check_whole(folder)


def test_a_run_whose_budget_is_spent_measures_nothing_more(runner: Runner) -> None:
    process = runner.start("run", *SMALL, "--backend", "venv", "--budget", "1h")
    wait_for(lambda: [line for line in runner.records() if line["round"] == 2])
    assert kill(process, 0.0)
    (folder,) = runner.folder.glob("reports/runs/[!.]*")
    Run.open(folder).note("canary", case="rnn-step/lstm-b32-h128", round=2, seconds=0.01, spent=3600.5)
    before = measured(folder)
    done = runner("run", "--resume")
    assert done.returncode == 0, done.stderr
    assert "the budget is spent in round " in done.stderr
    assert measured(folder) == before
    assert Run.open(folder).journal().ended == "done"


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("plan.json", ('"seconds": 0.05', '"seconds": 0.06'), "the plan of run"),
        *slow(
            ("journal.jsonl", ('"harness": "', '"harness": "0'), "was started with measuring code 0"),
            ("journal.jsonl", ('"device_name": "', '"device_name": "Other '), "the device name of run"),
        ),
        ("journal.jsonl", ('"digests": {"np-old": "', '"digests": {"np-old": "0'), "np-old has changed since"),
    ],
)
def test_a_run_is_not_resumed_with_something_else(
    name: str, change: tuple[str, str], message: str, runner: Runner
) -> None:
    process = runner.start("run", *SMALL, "--backend", "venv")
    wait_for(runner.records)
    assert kill(process, 0.0)
    (path,) = runner.folder.glob(f"reports/runs/[!.]*/{name}")
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    reseal(Run(path.parent))
    before = len(runner.records())
    done = runner("run", "--resume")
    assert done.returncode == 2
    assert message in done.stderr
    assert "hint: " in done.stderr
    assert len(runner.records()) == before


def test_options_that_a_run_decides_are_refused(runner: Runner) -> None:
    done = runner("run", "--resume", "--rounds", "5", "--backend", "venv")
    assert done.returncode == 2
    assert "without --backend, --rounds" in done.stderr


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineSocket]:
    """The engine behind a socket that DOCKER_HOST names."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not host.startswith("unix://"):
        pytest.skip("the engine is not at a socket of this machine")
    with tempfile.TemporaryDirectory() as folder:
        forwarder = EngineSocket(Path(folder, "docker.sock"), host.removeprefix("unix://"))
        monkeypatch.setenv("DOCKER_HOST", f"unix://{forwarder.path}")
        yield forwarder
        forwarder.cut()


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.parametrize("seconds", [0.0, 0.35, 0.7])
def test_a_run_whose_engine_dies_ends_with_its_own_code_and_goes_on_later(
    seconds: float, runner: Runner, engine: EngineSocket, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = runner.start("run", *SMALL, "--backend", "docker")
    wait_for(lambda: len(runner.records()) >= 3)
    time.sleep(seconds)  # a cell is at work, or a server starts
    engine.cut()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 4, err
    folder = folder_of(runner, "reports")
    assert folder is not None
    assert f"then `{runner.name} run --resume {folder.name}`" in err
    assert "Traceback" not in err
    kept = {name: measured(folder)[name] for name in finished(folder)}
    assert {record["status"] for record in runner.records()} == {"ok"}
    monkeypatch.delenv("DOCKER_HOST")
    done = runner("run", "--resume", folder.name)
    assert done.returncode == 0, done.stderr
    assert {name: measured(folder)[name] for name in kept} == kept
    check_whole(folder)
    wait_for(partial(none_left, folder.name))


@pytest.mark.slow
@pytest.mark.docker
def test_a_container_that_is_killed_never_stops_the_rest(runner: Runner) -> None:
    import docker

    process = runner.start("run", *SMALL, "--backend", "docker")
    wait_for(lambda: len(runner.records()) >= 3)
    folder = folder_of(runner, "reports")
    assert folder is not None
    client = docker.from_env()

    def one_is_killed() -> bool:
        for name in containers(folder.name):
            with suppress(docker.errors.APIError):
                client.api.kill(name)
                return True
        return False

    wait_for(one_is_killed)
    client.close()
    process.communicate(timeout=200)
    failed = [record for record in runner.records() if record["status"] != "ok"]
    assert all(
        "said nothing" not in record["reason"] for record in failed
    )  # it is known to be gone, and not waited for
    assert process.returncode in {0, 1}
    assert len({(record["cell"], record["round"]) for record in runner.records()}) == len(runner.records())
    assert Run.open(folder).journal().ended == "done"
