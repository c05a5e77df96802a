"""A run over several hosts with a real Dask and a real Slurm has the same records as on one host."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.hosts.certificates import make
from runner.store.run import Run, runs
from tests.integration.conftest import PATIENCE
from tests.support.ports import free_port
from tests.support.slurm import Cluster

MATRIX = """
version: 1
environments:
  np: {framework: numpy, release: "2.*", python: "3.11", requirements: [numpy]}
workloads:
  rnn-step: {cases: [lstm-b32-h128, rnn-b32-h128, gru-b32-h128], phases: [forward]}
measure: {rounds: 1, max_rounds: 1, seconds: 0.02, threads: 1, controls: false}
"""


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


def _until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, f"{what} did not happen within {seconds} s"
        time.sleep(0.1)


@contextmanager
def _dask(folder: Path, certificates: Path) -> Iterator[str]:
    """Give the address of a scheduler on loopback that has one worker."""
    port = free_port()
    names = {"--tls-ca-file": "ca.pem", "--tls-cert": "certificate.pem", "--tls-key": "key.pem"}
    tls = [word for name, file in names.items() for word in (name, str(certificates / file))]
    scheduler = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    address = f"dask://127.0.0.1:{port}"
    worker = ("runner", "worker", address, "--device", "cpu", "--certificates", str(certificates))
    with _process(*scheduler, "--protocol", "tls", *tls, log=folder / "scheduler.log"):
        _until(lambda: _listens(port), "the start of the scheduler")
        with _process(*worker, log=folder / "worker.log", XDG_CACHE_HOME=str(folder / "cache")):
            yield address


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
        assert driver.wait(PATIENCE) == 0, (folder / "driver.log").read_text()
    return runs(folder / "reports")[0]


def _essence(run: Run) -> dict[str, tuple[object, ...]]:
    """Return what the records of a run have in common wherever it was measured."""
    names = ("environment", "framework", "kind", "backend", "device", "harness", "threads", "precision", "protocol")
    return {
        record.cell.id: (record.status, record.loss, *(record.facts.get(name) for name in names))
        for record in run.records()
    }


def test_local_dask_with_tls_and_slurm_give_the_same_records(tmp_path: Path, slurm_cluster: Cluster) -> None:
    make(tmp_path / "certificates")
    local, dask, batch = (tmp_path / name for name in ("local", "dask", "batch"))
    for folder in (local, dask, batch):
        folder.mkdir()
    expected = _essence(_run(local))
    tls = ("--certificates", str(tmp_path / "certificates"))
    with _dask(dask, tmp_path / "certificates") as address:
        assert _essence(_run(dask, "--executor", address, *tls)) == expected
    assert _essence(_run(batch, "--executor", "slurm://gpu?devices=2")) == expected
    for folder in (local, dask, batch):
        (run,) = runs(folder / "reports")
        assert (run.path / "index.html").exists()
        assert not (run.path / "blocks").exists()
    assert not list((batch / "reports").glob("slurm-*"))
