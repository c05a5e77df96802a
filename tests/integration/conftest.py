"""A small matrix of two NumPy environments, and the real command line in a process of its own."""

import contextlib
import json
import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runner.cli.program import started_as
from runner.core.paths import cache_folder
from tests.fakes import driver
from tests.support import needs, slurm
from tests.support.options import with_last_values

ROOT = Path(__file__).parents[2]
PATIENCE = 180.0
"""Seconds for what takes seconds: another worker, and other sessions, may have the CPUs."""
MATRIX = """\
version: 1
environments:
  np-old: {framework: numpy, release: "2.4.6", python: "3.11", lock: docker/locks/numpy.txt}
  np-new: {framework: numpy, release: "2.4.6", python: "3.11", lock: docker/locks/numpy.txt}
workloads:
  rnn-step: {cases: [lstm-b32-h128, rnn-b32-h128]}
measure: {controls: false}
presets:
  tiny: {select: [rnn-step/rnn-b32-h128], rounds: 3, max_rounds: 3, seconds: 0.05}
"""


@dataclass
class Runner:
    """The command line in a folder with a matrix, and with caches that tests share."""

    folder: Path
    started: list["subprocess.Popen[str]"]

    def __call__(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run to the end."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=500)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start, with both streams kept; a measurement starts at once, however busy this machine is."""
        if arguments[:1] in {("run",), ("nightly",)}:
            arguments = (*with_last_values(arguments), "--busy-ok")
        process = subprocess.Popen(
            [sys.executable, "-m", "runner", *arguments],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.started.append(process)
        return process

    @property
    def name(self) -> str:
        """What messages call the program here."""
        with contextlib.chdir(self.folder):
            return shlex.join(started_as("__main__.py"))

    def json(self, *arguments: str) -> dict[str, Any]:
        """Run a command that prints JSON and succeeds."""
        done = self(*arguments)
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def records(self) -> list[dict[str, Any]]:
        """Return every record of every run here."""
        paths = sorted(self.folder.glob("reports/runs/[!.]*/records/*.json"))
        return [json.loads(path.read_text()) for path in paths]


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    """The command line beside MATRIX."""
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    shutil.copytree(ROOT / "docker", tmp_path / "docker")
    command = Runner(tmp_path, [])
    yield command
    for process in command.started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.fixture
def another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host name that no runner of this machine has: a run of the user keeps its hands off what this test labels."""
    name = f"{socket.gethostname()}-{secrets.token_hex(4)}"
    monkeypatch.setattr(socket, "gethostname", lambda: name)


def journal_of(run: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a run's journal."""
    path = run / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def containers(*runs: str) -> list[str]:
    """Return the names of the containers of runs that are there, and of nobody else's."""
    import docker

    client = docker.from_env()
    try:
        listed = client.containers.list(all=True, filters={"label": "io.matrix-runner.run"}, ignore_removed=True)
        return [str(container.name) for container in listed if any(run in str(container.name) for run in runs)]
    finally:
        client.close()


def leftovers(client: Any, pid: int) -> list[str]:
    """Return the containers and unfinished images of a process's builds; other runners may use the engine, too."""
    from runner.backends.docker.options import OWNER

    containers = client.api.containers(all=True, filters={"label": OWNER})
    images = client.api.images(filters={"label": OWNER, "dangling": True})
    return [item["Id"] for item in (*containers, *images) if f":{pid}:" in item["Labels"][OWNER]]


def wait_for(condition: Callable[[], object], seconds: float = PATIENCE) -> Any:
    """Return the first true value of ``condition``; fails after ``seconds``."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    pytest.fail(f"nothing came within {seconds:g} s")


def children(pid: int) -> list[int]:
    """Return the process ids of all that a process started and that they started."""
    pids: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if parent == pid:
            pids += [int(entry.name), *children(int(entry.name))]
    return pids


def alive(pid: int) -> bool:
    """Say whether a process is there and not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="session")
def driver_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in for NVIDIA's driver, built once; skipped where there is no C compiler."""
    if driver.compiler() is None:
        pytest.skip("no C compiler builds the stand-in for the driver")
    return driver.built(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def standin(driver_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[driver.StandIn]:
    """A made-up GPU that every process sees which is started from now on.

    What is written down of it, and the lock that keeps it to one runner, are in the test's own folders. Environments
    and references are shared.
    """
    shared, private = cache_folder(os.environ), tmp_path / "cache" / "matrix-runner"
    private.mkdir(parents=True)
    for name in ("venvs", "references"):
        (shared / name).mkdir(parents=True, exist_ok=True)
        (private / name).symlink_to(shared / name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(private.parent))
    board = driver.StandIn(tmp_path / "gpus")
    for name, value in driver.environment(driver_library, board).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield board
    board.close()


@pytest.fixture(scope="session")
def started_slurm(request: pytest.FixtureRequest) -> Iterator[slurm.Cluster]:
    """A Slurm with one node; without its packages the test is skipped, or fails with ``--need slurm``."""
    missing = slurm.missing()
    if missing or os.geteuid():
        reason = f"Slurm needs {', '.join(missing)}" if missing else "Slurm's daemons need root"
        needs.missing(request.config, "slurm", reason)
    with slurm.cluster() as cluster:
        yield cluster


@pytest.fixture
def slurm_cluster(started_slurm: slurm.Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[slurm.Cluster]:
    """The Slurm that commands of this test and of its processes use."""
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, started_slurm.environment[name])
    yield started_slurm
    started_slurm.clear()
