"""A run over several hosts with a real Dask and a real Slurm: the same records as on one, whoever is killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner.store.run import Run, runs
from runner.workflows.hosts.certificates import make
from tests.support import slurm

MATRIX = """
version: 1
environments:
  np: {framework: numpy, release: "2.*", python: "3.11", requirements: [numpy]}
workloads:
  rnn-step: {cases: [lstm-b32-h128, rnn-b32-h128, gru-b32-h128], phases: [forward]}
measure: {rounds: 1, max_rounds: 1, seconds: 0.02, threads: 1, controls: false}
"""
CELLS = 3


@contextmanager
def _process(*arguments: str, log: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of this Python until the block ends."""
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments], stdout=stream, stderr=stream, env={**os.environ, **variables}
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def _until(condition: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, f"{what} did not happen within {seconds} s"
        time.sleep(0.1)


@contextmanager
def _dask(
    folder: Path, workers: int, certificates: Path | None = None
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Give the address of a scheduler on loopback, and its workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    tls = [] if certificates is None else ["--protocol", "tls"]
    names = {"--tls-ca-file": "ca.pem", "--tls-cert": "certificate.pem", "--tls-key": "key.pem"}
    tls += [word for name, file in names.items() for word in (name, str(certificates / file))] if certificates else []
    address = f"dask://127.0.0.1:{port}"
    with _process("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", *tls,
                  log=folder / "scheduler.log") as scheduler:  # fmt: skip
        _until(lambda: _listens(port), "the start of the scheduler")
        processes = [scheduler]
        with _several(folder, address, workers, certificates, processes):
            yield address, processes


@contextmanager
def _several(
    folder: Path, address: str, count: int, certificates: Path | None, processes: list[subprocess.Popen[bytes]]
) -> Iterator[None]:
    if count == 0:
        yield
        return
    options = ["--certificates", str(certificates)] if certificates else []
    cache = str(folder / f"cache{count}")
    with _process("runner", "worker", address, "--device", "cpu", *options, log=folder / f"worker{count}.log",
                  XDG_CACHE_HOME=cache) as worker:  # fmt: skip
        processes.append(worker)
        with _several(folder, address, count - 1, certificates, processes):
            yield


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _command(folder: Path, *words: str) -> list[str]:
    (folder / "matrix.yaml").write_text(MATRIX)
    options = ["--matrix", str(folder / "matrix.yaml"), "--reports", str(folder / "reports"), "--busy-ok"]
    return ["runner", "run", *options, *words]


def _run(folder: Path, *words: str) -> Run:
    """Measure to the end, and return the run."""
    backend = [] if "--resume" in words else ["--backend", "host"]
    with _process(*_command(folder, *backend, *words), log=folder / "driver.log") as driver:
        assert driver.wait(120) == 0, (folder / "driver.log").read_text()
    return runs(folder / "reports")[0]


def _is_complete(run: Run) -> bool:
    counts = Counter((entry.cell, entry.round) for entry in run.journal().counting())
    return len(counts) == CELLS and set(counts.values()) == {1} and run.journal().ended == "done"


def _essence(run: Run) -> dict[str, tuple[object, ...]]:
    """Return what the records of a run have in common wherever it was measured."""
    names = ("environment", "framework", "kind", "backend", "device", "harness", "threads", "precision", "protocol")
    return {
        record.cell.id: (record.status, record.loss, *(record.facts.get(name) for name in names))
        for record in run.records()
    }


def _leased(folder: Path) -> bool:
    return any(run.journal().leases for run in runs(folder / "reports"))


def test_workers_scheduler_and_driver_are_killed_and_nothing_is_lost(tmp_path: Path) -> None:
    with _dask(tmp_path, 2) as (address, (scheduler, victim, _)):
        words = ("--backend", "host", "--executor", address)
        with _process(*_command(tmp_path, *words), log=tmp_path / "first.log") as driver:
            _until(lambda: _leased(tmp_path), "the first lease")
            victim.kill()
            _until(lambda: len(runs(tmp_path / "reports")[0].journal().blocks) > 0, "the first block")
            driver.send_signal(signal.SIGKILL)
        run = _run(tmp_path, "--resume", "--executor", address)
        assert _is_complete(run)
        assert not list(run.path.glob(".*.tmp"))
        with _process(*_command(tmp_path, *words), log=tmp_path / "second.log") as driver:
            _until(lambda: len(runs(tmp_path / "reports")) == 2 and _leased(tmp_path), "the second run")
            scheduler.kill()
            assert driver.wait(60) == 4
        text = (tmp_path / "second.log").read_text()
        assert "the Dask scheduler at" in text
        assert "Traceback" not in text


def test_local_dask_with_tls_and_slurm_give_the_same_records(tmp_path: Path, slurm_configuration: Path) -> None:
    make(tmp_path / "certificates")
    local, dask, batch = (tmp_path / name for name in ("local", "dask", "batch"))
    for folder in (local, dask, batch):
        folder.mkdir()
    expected = _essence(_run(local))
    tls = ("--certificates", str(tmp_path / "certificates"))
    with _dask(dask, 1, tmp_path / "certificates") as (address, _):
        assert _essence(_run(dask, "--executor", address, *tls)) == expected
    assert _essence(_run(batch, "--executor", "slurm://gpu?devices=2")) == expected
    for folder in (local, dask, batch):
        assert (runs(folder / "reports")[0].path / "index.html").exists()
    assert not list((batch / "reports").glob("slurm-*"))


def test_a_cancelled_job_and_a_failed_node_of_slurm_are_handed_out_again(
    tmp_path: Path, slurm_configuration: Path
) -> None:
    words = ("--backend", "host", "--executor", "slurm://gpu?devices=1&gres=gpu:1&device=cpu")
    with _process(*_command(tmp_path, *words), log=tmp_path / "driver.log") as driver:
        _until(lambda: _leased(tmp_path), "the first lease")
        _until(lambda: "RUNNING" in _slurm("squeue", "--noheader", "--format=%T"), "the first job")
        _slurm("scancel", "--name=matrix-runner")
        _until(lambda: runs(tmp_path / "reports")[0].journal().blocks, "the first block")
        _slurm("scontrol", "update", "nodename=localhost", "state=down", "reason=test")
        _slurm("scontrol", "update", "nodename=localhost", "state=resume")
        assert driver.wait(120) == 0, (tmp_path / "driver.log").read_text()
    run = runs(tmp_path / "reports")[0]
    assert _is_complete(run)
    assert sum(event["lease"] for event in run.journal().leases.values()) > CELLS


def _slurm(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def slurm_configuration(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A Slurm with one node; without its packages the test is skipped, or fails where --run-slurm was given."""
    missing = slurm.missing()
    if missing or os.geteuid():
        reason = f"Slurm needs {', '.join(missing)}" if missing else "Slurm's daemons need root"
        if request.config.getoption("--run-slurm"):
            pytest.fail(f"--run-slurm was given, and {reason}")
        pytest.skip(reason)
    with slurm.cluster() as configuration, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(configuration))
        yield configuration
