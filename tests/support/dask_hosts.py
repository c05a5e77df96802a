"""A real Dask for tests: scheduler, workers and drivers as processes, on loopback or on hosts with a network between.

A host of ``Network`` is a network namespace of the kernel: it has its own interface, addresses and ports, and shares
the files of this machine.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from runner.core.model import Cell
from runner.store.run import Run, runs
from tests.support.ports import free_port

ROOT = Path(__file__).parents[2]
CASES = ("lstm-b32-h128", "rnn-b32-h128", "gru-b32-h128", "lstm-b128-h128", "rnn-b128-h128")
MATRIX = """
version: 1
environments:
  np: {{framework: numpy, release: "2.*", python: "3.11", requirements: [numpy]}}
workloads:
  rnn-step: {{cases: [{cases}], phases: [forward]}}
measure: {{rounds: {rounds}, max_rounds: {rounds}, seconds: 0.02, threads: 1, controls: false}}
"""
IMPATIENT = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "2s", "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "11s"}
"""Dask's shortest times until a silent worker is given up, and until a silent connection is dead; Dask makes 5 s of the
first, and refuses less than 11 s for the second.
"""
PORT = 8786


def missing() -> str:
    """Return why there can be no network namespaces; empty if there can."""
    if shutil.which("ip") is None:
        return "there is no `ip`"
    name = f"mr-{secrets.token_hex(4)}"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        subprocess.run(["ip", "netns", "delete", name], check=False)
    return done.stderr.strip()


class Network:
    """Hosts on a switch; all of it is gone after ``close``, with the processes that still run there."""

    def __init__(self, hosts: Sequence[str]) -> None:
        """Make a network namespace for each host, and one for the switch."""
        self.id = secrets.token_hex(3)
        self.made: list[str] = []
        try:
            self._make("switch")
            self._ip("switch", "link", "add", "bridge", "type", "bridge")
            self._ip("switch", "link", "set", "bridge", "up")
            for number, host in enumerate(hosts, 1):
                self._make(host)
                self._ip("switch", "link", "add", host, "type", "veth", "peer", "eth0", "netns", self.name(host))
                self._ip("switch", "link", "set", host, "master", "bridge", "up")
                self._ip(host, "address", "add", f"10.0.0.{number}/24", "dev", "eth0")
                self._ip(host, "link", "set", "eth0", "up")
                self._ip(host, "link", "set", "lo", "up")
        except BaseException:
            self.close()
            raise
        self.addresses = {host: f"10.0.0.{number}" for number, host in enumerate(hosts, 1)}

    def name(self, host: str) -> str:
        """Return the name of the namespace of a host."""
        return f"mr-{self.id}-{host}"

    def _make(self, host: str) -> None:
        self.made.append(host)
        subprocess.run(["ip", "netns", "add", self.name(host)], check=True, timeout=30)

    def _ip(self, host: str, *words: str) -> None:
        subprocess.run(["ip", "-n", self.name(host), *words], check=True, timeout=30)

    def cut(self, host: str) -> None:
        """Take the cable of a host out of the switch."""
        self._ip("switch", "link", "set", host, "down")

    def join(self, host: str) -> None:
        """Put the cable of a host back in."""
        self._ip("switch", "link", "set", host, "up")

    def close(self) -> None:
        """Remove the namespaces."""
        for host in self.made:
            name = self.name(host)
            pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout
            for pid in map(int, pids.split()):
                os.kill(pid, signal.SIGKILL)
            subprocess.run(["ip", "netns", "delete", name], check=False)
        self.made = []


@dataclass
class Cluster:
    """The processes of one Dask and of its drivers.

    Attributes:
        folder: has the matrix, the results, the logs, and the temporary files of all processes.
        certificates: the folder of certificates; None without TLS.
        network: the hosts; None for loopback.
        rounds: of the matrix.
        cases: of the matrix.
        settings: environment variables of all processes, such as IMPATIENT.
    """

    folder: Path
    certificates: Path | None = None
    network: Network | None = None
    rounds: int = 1
    cases: Sequence[str] = CASES
    settings: Mapping[str, str] = field(default_factory=dict)
    processes: list[tuple["subprocess.Popen[bytes]", Path]] = field(default_factory=list)
    port: int = 0

    def __post_init__(self) -> None:
        """Write the matrix, and choose a port."""
        (self.folder / "tmp").mkdir()
        self.choose(self.cases)
        self.port = PORT if self.network else free_port()

    def choose(self, cases: Sequence[str]) -> None:
        """Let the runs that start from now on measure other cases."""
        self.cases = cases
        self.matrix.write_text(MATRIX.format(cases=", ".join(cases), rounds=self.rounds))

    @property
    def matrix(self) -> Path:
        """The matrix file."""
        return self.folder / "matrix.yaml"

    @property
    def address(self) -> str:
        """What `runner run --executor` and `runner worker` are given."""
        host = self.network.addresses["head"] if self.network else "127.0.0.1"
        return f"dask://{host}:{self.port}"

    def start(self, host: str, *words: str, role: str = "") -> "subprocess.Popen[bytes]":
        """Start a module of this Python on a host; its output goes to a log of its own."""
        role = role or host
        log = self.folder / f"{role}-{sum(path.name.startswith(f'{role}-') for _, path in self.processes)}.log"
        inside = ["ip", "netns", "exec", self.network.name(host)] if self.network else []
        paths = {"TMPDIR": str(self.folder / "tmp"), "XDG_CACHE_HOME": str(self.folder / f"cache-{role}")}
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [*inside, sys.executable, "-m", *words],
                stdout=stream,
                stderr=stream,
                cwd=self.folder,
                env={**os.environ, **self.settings, **paths, "PYTHONPATH": str(ROOT)},
            )
        self.processes.append((process, log))
        return process

    def log(self, process: "subprocess.Popen[bytes]") -> str:
        """Return what a process has printed."""
        return next(path for each, path in self.processes if each is process).read_text()

    def scheduler(self) -> "subprocess.Popen[bytes]":
        """Start a scheduler, and wait until it listens."""
        names = {"--tls-ca-file": "ca.pem", "--tls-cert": "certificate.pem", "--tls-key": "key.pem"}
        tls = ["--protocol", "tls"] if self.certificates else []
        for option, name in names.items():
            tls += [option, str(self.certificates / name)] if self.certificates else []
        host = self.address.removeprefix("dask://").partition(":")[0]
        words = ("--host", host, "--port", str(self.port), "--dashboard-address", "127.0.0.1:0", *tls)
        process = self.start("head", "distributed.cli.dask_scheduler", *words, role="scheduler")
        until(lambda: "Scheduler at:" in self.log(process), "the start of the scheduler")
        return process

    def worker(self, host: str, program: str = "runner") -> "subprocess.Popen[bytes]":
        """Start a worker with one CPU."""
        return self.start(host, program, "worker", self.address, "--device", "cpu", *self._tls())

    def workers(self, *hosts: str) -> list["subprocess.Popen[bytes]"]:
        """Start workers, and wait until all have joined."""
        processes = [self.worker(host) for host in hosts]
        for process in processes:
            self.wait_for(process, "offers cpu")
        return processes

    def driver(self, *words: str, program: str = "runner") -> "subprocess.Popen[bytes]":
        """Start a run, or continue the last one with ``--resume``."""
        backend = () if "--resume" in words else ("--backend", "host")
        options = ("--matrix", str(self.matrix), "--reports", str(self.folder / "reports"), "--busy-ok")
        executor = ("--executor", self.address, *self._tls())
        return self.start("driver", program, "run", *options, *executor, *backend, *words)

    def _tls(self) -> tuple[str, ...]:
        return ("--certificates", str(self.certificates)) if self.certificates else ()

    def finish(self, process: "subprocess.Popen[bytes]", code: int = 0, seconds: float = 120.0) -> str:
        """Wait for the end of a process, check its exit code, and return what it has printed."""
        assert process.wait(seconds) == code, self.log(process)
        text = self.log(process)
        assert "Traceback" not in text, text
        return text

    def wait_for(self, process: "subprocess.Popen[bytes]", text: str, times: int = 1) -> None:
        """Wait until a process has printed something."""
        until(
            lambda: self.log(process).count(text) >= times, f"{text!r} of {process.args!r}", lambda: self.log(process)
        )

    def run(self) -> Run:
        """Return the last run."""
        return runs(self.folder / "reports")[0]

    def events(self, name: str) -> list[dict[str, object]]:
        """Return the events of a kind in the journal of the last run; none if there is no run yet."""
        for run in runs(self.folder / "reports")[:1]:
            lines = (run.path / "journal.jsonl").read_text().splitlines(keepends=True)
            events = [json.loads(line) for line in lines if line.endswith("\n")]
            return [event for event in events if event["event"] == name]
        return []

    def close(self) -> None:
        """Kill all processes."""
        for process, _ in self.processes:
            process.kill()
            process.wait()


@contextmanager
def cluster(folder: Path, **options: object) -> Iterator[Cluster]:
    """Give a Dask without processes; those that were started end with the block."""
    made = Cluster(folder, **options)  # type: ignore[arg-type]
    try:
        yield made
    finally:
        made.close()


def check(cluster: Cluster) -> Counter[str]:
    """Check that the last run has every record once and nothing else, and return what happened on the way there."""
    run, cells = cluster.run(), len(cluster.cases) * cluster.rounds
    journal = run.journal()
    assert journal.ended == "done"
    assert not journal.warnings
    assert len(list(run.records(journal))) == cells  # raises for a damaged record
    measured = [(entry.cell, entry.round) for entry in journal.entries]
    assert len(measured) == len(set(measured)) == cells, Counter(measured).most_common(3)
    last = {case: lease.number for case, lease in journal.leases.items()}
    assert {event["case"]: event["lease"] for event in cluster.events("block")} == last
    assert {(entry.attempt, Cell.parse(entry.cell).case_id) for entry in journal.entries} == {
        (lease, case) for case, lease in last.items()
    }
    for event in ("block", "canary", "round"):
        keys = [(each["case"], each.get("round")) for each in cluster.events(event)]
        assert len(keys) == len(set(keys)), (event, keys)
    assert not [*run.path.glob(".*.tmp"), *run.path.glob("**/*.tmp")]
    texts = [path.read_text() for _, path in cluster.processes if path.name.startswith("driver")]
    return Counter(
        runs=1,
        blocks=len(journal.blocks),
        records=cells,
        leases=len(cluster.events("leased")),
        drivers=len(texts),
        lost=sum(text.count(": not measured on ") for text in texts),
        late=sum(text.count("a reply is late") for text in texts),
    )


def listening(process: "subprocess.Popen[bytes]", *inside: str) -> list[tuple[str, int]]:
    """Return address and port of each TCP socket where a process listens; ``inside`` begins a command on its host."""
    lines = subprocess.run([*inside, "ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout.splitlines()
    addresses = [line.split()[3].rpartition(":") for line in lines if f"pid={process.pid}," in line]
    assert addresses, lines
    return [(host, int(port)) for host, _, port in addresses]


def no_folders_left(cluster: Cluster) -> None:
    """Kill all processes of a cluster, and wait until their temporary folders are gone."""
    cluster.close()
    until(lambda: not [*(cluster.folder / "tmp").glob("matrix-runner-*")], "the end of the temporary folders")


def until(
    condition: Callable[[], object], what: str, details: Callable[[], str] = lambda: "", seconds: float = 120.0
) -> None:
    """Wait until something is true."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, f"{what} did not happen within {seconds} s: {details()}"
        time.sleep(0.05)
