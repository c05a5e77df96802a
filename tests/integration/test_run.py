"""The whole flow through the real command line, with NumPy as the framework."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import runner as package
from tests.integration.conftest import (
    PATIENCE,
    ROOT,
    Runner,
    alive,
    children,
    containers,
    journal_of,
    leftovers,
    wait_for,
)
from tests.support.needs import slow

BACKENDS = (*slow("venv"), pytest.param("docker", marks=pytest.mark.docker))
SIGNALS = (signal.SIGINT, *slow(signal.SIGTERM))
INTERRUPTIONS = [
    (signal.SIGINT, "venv"),
    pytest.param(signal.SIGTERM, "docker", marks=pytest.mark.docker),
    pytest.param(signal.SIGTERM, "venv", marks=pytest.mark.slow),
    pytest.param(signal.SIGINT, "docker", marks=(pytest.mark.docker, pytest.mark.slow)),
]
TINY = ("--preset", "tiny", "--device", "cpu", "--threads", "1")


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_environments_are_measured_compared_and_exported(backend: str, runner: Runner) -> None:
    planned = runner.json("plan", *TINY, "--backend", backend, "--format", "json")
    running = [cell for cell in planned["cells"] if cell["verdict"] == "run"]
    assert len(running) == 4

    done = runner("run", *TINY, "--backend", backend)
    assert done.returncode == 0, done.stderr
    page = Path(runner.folder, done.stdout.strip())
    assert "<svg" in page.read_text()
    records = runner.records()
    assert len(records) == 4 * 3
    assert {record["status"] for record in records} == {"ok"}
    assert {record["facts"]["backend"] for record in records} == {backend}
    assert {record["facts"]["server"] for record in records} >= {"np-old#1", "np-old#2", "np-new#2"}
    together = Counter(record["facts"]["turns_with"] for record in records)
    assert together == {f"{number}/{position}": 2 for number in (1, 2, 3) for position in (0, 1)}
    assert all(sum(record["facts"]["turns"]) == len(record["seconds"]) for record in records)
    journal = journal_of(page.parent)
    assert [line["event"] for line in journal if line["event"] != "measured"] == [
        "begun",
        "groups",
        *["round", "times"] * 3,
        "ended",
    ]
    measured = [line for line in journal if line["event"] == "measured"]
    assert [line["round"] for line in measured] == [1] * 4 + [2] * 4 + [3] * 4

    compared = runner.json("compare", "np-old", "np-new", "--format", "json")
    assert len(compared["rows"]) == 2
    assert all(row["ratio_low"] < row["ratio"] < row["ratio_high"] for row in compared["rows"])
    assert {row["rounds"] for row in compared["rows"]} == {3}

    series = runner.json("history", "--format", "json")["trends"]
    assert {(point["run"], point["kind"], point["rounds"]) for trend in series for point in trend["points"]} == {
        (page.parent.name, "run", 3)
    }
    ratios = [point["ratio"] for trend in series for point in trend["points"] if point["base"]]
    assert sorted(ratios) == sorted(row["ratio"] for row in compared["rows"])
    assert runner("history", "rebuild").stdout == "reports/history.db: 0 runs added or changed, 1 unchanged\n"

    assert runner("export", "-o", "samples.parquet").returncode == 0
    samples = package.load_samples(runner.folder / "samples.parquet")
    assert len(samples) == sum(len(record["seconds"]) for record in records)
    assert samples["seconds"].min() > 0
    assert "numpy-loop" in runner("accuracy").stdout


READS = """
import sys
from runner.cli import main
def note(event, arguments):
    if event == "open" and "/runs/" in str(arguments[0]) and not arguments[2] & 3:
        print(arguments[0], file=log, flush=True)
log = open("reads", "w")
sys.addaudithook(note)
main()
"""
"""Runs the command line, and names each file of a run that it opens for reading."""


def test_a_run_reads_its_journal_and_each_of_its_records_once(runner: Runner) -> None:
    words = [*TINY, "--backend", "venv", "--rounds", "1", "--max-rounds", "1", "--busy-ok"]
    command = [sys.executable, "-c", READS, "run", *words]
    done = subprocess.run(command, cwd=runner.folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert done.returncode == 0
    reads = Counter(Path(line).name for line in (runner.folder / "reads").read_text().splitlines())
    records = {path.name for path in runner.folder.glob("reports/runs/[!.]*/records/*.json")}
    assert len(records) == 4
    assert {name: reads[name] for name in (*records, "journal.jsonl")} == dict.fromkeys((*records, "journal.jsonl"), 1)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["venv", pytest.param("docker", marks=pytest.mark.docker)])
def test_open_verdicts_get_further_rounds_and_each_case_its_controls(backend: str, runner: Runner) -> None:
    text = (runner.folder / "matrix.yaml").read_text().replace("measure: {controls: false}\n", "")
    (runner.folder / "matrix.yaml").write_text(text.replace("max_rounds: 3", "max_rounds: 5"))
    done = runner("run", *TINY, "--seconds", "0.02", "--backend", backend)
    assert done.returncode == 0, done.stderr
    journal = journal_of(Path(runner.folder, done.stdout.strip()).parent)
    rounds = [line["round"] for line in journal if line["event"] == "round"]
    assert rounds == list(range(1, rounds[-1] + 1))
    assert [line["round"] for line in journal if line["event"] == "further"] == rounds[3:]
    assert [line["round"] for line in journal if line["event"] == "canary"] == rounds
    assert all(0 < line["seconds"] < 10 for line in journal if line["event"] == "canary")
    twins = [record for record in runner.records() if record["cell"].startswith("np-old@twin/")]
    assert len(twins) >= 3
    assert {record["facts"]["server"] for record in twins} >= {"np-old@twin#1", "np-old@twin#3"}
    rows = runner.json("compare", "np-old", "np-new", "--format", "json")["rows"]
    undecided = [row for row in rows if row["verdict"] == "inconclusive"]
    assert all(rounds[-1] == 5 or (row["more_rounds_low"] or 31) > 5 - row["rounds"] for row in undecided)
    checked = runner("check", "--format", "json")
    assert checked.returncode in (0, 1)
    document = json.loads(checked.stdout)
    assert document["advice"] or document["next"].startswith("runner ")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_lock_that_cannot_be_installed_leaves_records_and_the_rest_goes_on(backend: str, runner: Runner) -> None:
    lock = runner.folder / "docker" / "locks" / "broken.txt"
    lock.write_text(f"numpy==2.4.6 --hash=sha256:{'0' * 64}\n")
    text = (runner.folder / "matrix.yaml").read_text()
    (runner.folder / "matrix.yaml").write_text(text.replace("numpy.txt", "broken.txt", 1))
    done = runner("run", *TINY, "--backend", backend)
    assert done.returncode == 1
    assert "np-old: image-build" in done.stderr
    assert "DO NOT MATCH THE HASHES" in done.stderr
    failed = [record for record in runner.records() if record["status"] == "failed"]
    assert {record["class"] for record in failed} == {"image-build"}
    assert {record["cell"].split("/")[0] for record in failed} == {"np-old"}
    assert len([record for record in runner.records() if record["status"] == "ok"]) == 2 * 3
    (path,) = runner.folder.glob("reports/runs/[!.]*/sbom/*")  # of the environment that was built
    assert path.name == "np-new.cdx.json"
    packages = {component["name"]: component for component in json.loads(path.read_text())["components"]}
    assert packages["numpy"]["version"] == "2.4.6"
    assert packages["numpy"]["externalReferences"][0]["hashes"]
    assert packages["python"]["version"].startswith("3.11.")
    assert ("python:3.11-slim" in packages) == (backend == "docker")


@pytest.mark.parametrize(("number", "backend"), INTERRUPTIONS)
def test_an_interrupted_round_leaves_what_was_finished_and_nothing_else(
    number: signal.Signals, backend: str, runner: Runner
) -> None:
    assert runner("build", *TINY, "--backend", backend).returncode == 0
    process = runner.start("run", *TINY, "--rounds", "500", "--backend", backend)
    wait_for(lambda: len(runner.records()) >= 5)
    below = children(process.pid)
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "interrupted" in err
    assert f"`{runner.name} run --resume " in err
    assert "Traceback" not in err
    wait_for(lambda: not [pid for pid in below if alive(pid)])
    assert not list(runner.folder.rglob("*.tmp"))
    assert all(record["status"] == "ok" for record in runner.records())
    assert runner("accuracy").returncode == 0
    if backend == "docker":
        assert not containers(*runs_of(runner))


@pytest.mark.docker
def test_a_runner_that_is_killed_leaves_no_container(runner: Runner) -> None:
    assert runner("build", *TINY, "--backend", "docker").returncode == 0
    process = runner.start("run", *TINY, "--rounds", "500", "--backend", "docker")
    wait_for(lambda: len(runner.records()) >= 3)
    assert containers(*runs_of(runner))
    process.kill()
    wait_for(lambda: not containers(*runs_of(runner)))


@pytest.mark.slow
def test_a_child_that_is_killed_is_one_crash_and_the_rest_goes_on(runner: Runner) -> None:
    assert runner("build", *TINY, "--backend", "venv").returncode == 0
    process = runner.start("run", *TINY, "--seconds", "0.4", "--rounds", "4", "--backend", "venv")
    wait_for(lambda: runner.records() or process.poll() is not None)  # the children that gather facts are past
    while not [record for record in runner.records() if record["status"] == "failed"]:
        known = len(runner.records())
        victims = wait_for(lambda: [pid for pid in children(process.pid) if is_child(pid)])
        time.sleep(0.1)  # one that has already answered is about to go by itself
        with contextlib.suppress(ProcessLookupError):
            os.kill(victims[0], signal.SIGKILL)
        wait_for(partial(has_more_records, runner, process, known))
        assert process.poll() is None
    process.communicate(timeout=120)
    records = runner.records()
    failed = [record for record in records if record["status"] == "failed"]
    assert {record["class"] for record in failed} == {"crash"}
    assert "SIGKILL" in failed[0]["reason"]
    assert len(records) == 4 * 4
    assert len(failed) < 4


def has_more_records(runner: Runner, process: "subprocess.Popen[str]", known: int) -> bool:
    """Say whether a run has written more records than it had, or has ended."""
    return len(runner.records()) > known or process.poll() is not None


def runs_of(runner: Runner) -> list[str]:
    """Return the ids of the runs in a folder."""
    return [path.name for path in runner.folder.glob("reports/runs/[!.]*")]


def is_child(pid: int) -> bool:
    """Say whether a process is a forked child of a harness server: such a one leads a group, not a session."""
    try:
        _, group, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1:4]
    except OSError:
        return False
    return int(group) == pid != int(session)


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupted_venv_leaves_no_half_of_it(number: signal.Signals, runner: Runner) -> None:
    folder = runner.folder / "matrix-runner-slow-1.0"
    folder.mkdir()
    (folder / "setup.py").write_text("import time; time.sleep(300)\n")
    archive = runner.folder / "matrix-runner-slow-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, folder.name)
    digest = sha256(archive.read_bytes()).hexdigest()
    (runner.folder / "docker/locks/numpy.txt").write_text(f"matrix-runner-slow==1.0 --hash=sha256:{digest}\n")
    cache = runner.folder / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.setenv("PIP_FIND_LINKS", str(runner.folder))
        process = runner.start("build", "np-old", "--backend", "venv")
    wait_for(lambda: list(cache.glob("matrix-runner/venvs/np-old-*/bin/pip")))
    below = wait_for(lambda: children(process.pid))
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert not [path for path in cache.glob("matrix-runner/venvs/*") if path.is_dir()]
    wait_for(lambda: not [pid for pid in below if alive(pid)])


@pytest.mark.docker
@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupted_build_leaves_no_container_and_no_image(number: signal.Signals, runner: Runner) -> None:
    import docker

    dockerfile = runner.folder / "docker" / "numpy.Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + f"RUN sleep 300 # {runner.folder.name} {number}\n")
    client = docker.from_env()
    process = runner.start("build", "np-old", "--backend", "docker")
    wait_for(lambda: sleepers(client, process.pid))
    assert len(leftovers(client, process.pid)) >= 2  # the container of the step, and the image of those before it
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    wait_for(lambda: not sleepers(client, process.pid))
    wait_for(lambda: not leftovers(client, process.pid))
    client.close()


@pytest.mark.slow
def test_an_interrupted_report_is_the_old_one_or_the_new_one(runner: Runner) -> None:
    done = runner("run", *TINY, "--backend", "venv")
    page = Path(runner.folder, done.stdout.strip())
    old = page.read_bytes()
    ends = set()
    for delay in (0.0, 0.3, 0.6, 0.9, 1.2):
        process = runner.start("report")
        wait_for(partial(catches_sigterm, process.pid))
        time.sleep(delay)
        process.send_signal(signal.SIGTERM)
        _, messages = process.communicate(timeout=PATIENCE)
        assert process.returncode in (0, 130), messages
        ends.add(process.returncode)
        assert page.read_bytes() == old
        assert not list(page.parent.glob(".*tmp"))
    assert 130 in ends


def catches_sigterm(pid: int) -> bool:
    """Say whether a process has a handler for SIGTERM, as proc(5) shows it."""
    caught = Path(f"/proc/{pid}/status").read_text().partition("SigCgt:")[2].split()[0]
    return bool(int(caught, 16) >> signal.SIGTERM - 1 & 1)


def test_a_folder_that_is_no_place_for_an_unknown_selector_says_what_there_is(runner: Runner) -> None:
    done = runner("plan", "np-odl", "--backend", "venv")
    assert done.returncode == 3
    assert "np-old" in done.stderr
    done = runner("compare", "np-old", "np-odl")
    assert done.returncode == 2
    assert "did you mean 'np-old'?" in done.stderr or "np-old" in done.stderr


def sleepers(client: Any, pid: int) -> list[str]:
    """Return the ids of the containers in which a build step of a process sleeps."""
    of_builds = set(leftovers(client, pid))
    containers = client.containers.list(all=True, ignore_removed=True)
    return [str(each.id) for each in containers if each.id in of_builds and "sleep 300" in str(each.attrs["Args"])]
