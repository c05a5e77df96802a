"""Material that is measured: runs, nights with a planted slow-down, a search, and runs that were killed.

``python -m tests.behaviour.measured FOLDER``, with the code before the change. It needs Python 3.11, a package index,
and about ten minutes.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from runner.backends.venv import VenvBackend
from runner.core.model import Spec
from runner.core.paths import cache_folder
from tests.support.receivers import http_server
from tests.support.slow_numpy import SLOW_NUMPY, copy_with_code

ROOT = Path(__file__).parents[2]
MATRIX = """\
version: 1
environments:
  np-a: {framework: numpy, release: "2.4.4", python: "3.11", lock: locks/np-a.txt, requirements: [numpy==2.4.4]}
  np-b: {framework: numpy, release: "2.4.6", python: "3.11", lock: locks/np-b.txt, requirements: [numpy==2.4.6]}
workloads:
  rnn-step: {cases: [lstm-b32-h128, rnn-b32-h128]}
presets:
  tiny: {select: [rnn-step/rnn-b32-h128], rounds: 3, max_rounds: 3, seconds: 0.05}
"""
SEARCH = """\
version: 1
environments:
  np-a: {framework: numpy, release: "2.4.4", python: "3.11", lock: locks/np-a.txt}
  np-c: {framework: numpy, release: "2.4.5", python: "3.11", lock: locks/np-c.txt}
  np-d: {framework: numpy, release: "2.4.6", python: "3.11", lock: locks/np-d.txt}
workloads:
  rnn-step: {cases: [rnn-b32-h128], phases: [forward]}
measure: {controls: false, seconds: 0.05, threads: 1, margin: 0.4}
"""
MODEL = '''\
"""Two networks of NumPy: the large one fails."""

CASES = {"small": {"width": 64}, "large": {"width": 128}}


class NumpyModel:
    def __init__(self, random, width):
        self.x = random.rand(32, width).astype("float32")
        self.w = random.rand(width, width).astype("float32")
        if width > 100:
            raise ValueError("no such width")

    def forward(self):
        return self.x @ self.w
'''
CPU = ("--device", "cpu", "--threads", "1", "--seed", "1", "--busy-ok")
VENV = (*CPU, "--backend", "venv")
NIGHT = ("nightly", "np-b", "--preset", "tiny", *VENV, "--seconds", "0.1", "--budget", "3m")
CELL = "numpy-loop/rnn-step/rnn-b32-h128/forward/fp32"


@dataclass
class Site:
    """A folder with a matrix and its reports."""

    folder: Path

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start the command line here."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen([sys.executable, "-m", "runner", *words], cwd=self.folder, env=environment)

    def __call__(self, *words: str) -> int:
        """Run a command to its end, and return its exit code."""
        return self.start(*words).wait(600)

    def end(self, signum: signal.Signals, pattern: str, *words: str) -> None:
        """Start a command, and end it with a signal once it has made five files that match a pattern."""
        before = len([*self.folder.glob(pattern)])
        process = self.start(*words)
        while len([*self.folder.glob(pattern)]) < before + 5 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signum)
        process.wait(120)

    def planted(self, name: str, release: str, code: str, base: str = "np-b") -> None:
        """Give an environment another lock, and the virtual environment that goes with it, with code added to NumPy."""
        backend = VenvBackend(cache_folder(os.environ))
        base_lock, lock = self.folder / f"locks/{base}.txt", self.folder / f"locks/{name}.txt"
        spec = Spec(environment=name, framework="numpy", release=release, python="3.11", lock=lock)
        before = backend.home(replace(spec, environment=base, lock=base_lock))
        lock.write_text(f"{base_lock.read_text()}# {secrets.token_hex(8)}\n")
        copy_with_code(before, backend.home(spec), code)


@contextmanager
def receiver() -> Iterator[None]:
    """Let nights send their alerts to a server on loopback."""
    with http_server() as received:
        os.environ["MATRIX_RUNNER_ALERTS"] = f"json://127.0.0.1:{received.port}/hook"
        yield
        del os.environ["MATRIX_RUNNER_ALERTS"]


def runs(site: Site) -> None:
    """Measure runs in two releases and on the host, one with a network that fails, and kill one half way."""
    (site.folder / "network.py").write_text(MODEL)
    host = (*CPU, "--backend", "host", "--python", sys.executable, "--framework", "numpy", "--name", "np-host")
    rnn = ("--workload", "rnn-step")
    short = ("--rounds", "3", "--max-rounds", "3", "--seconds", "0.05")
    site("run", "np-a", "np-b", "--preset", "tiny", *VENV)
    site("run", "np-a", "np-b", *VENV, *short[:2], "--max-rounds", "5", "--seconds", "0.1", "--profile")
    site("run", *rnn, *host, *short)
    site("run", "np-a", "np-b", "--model", "network.py", *VENV, *short)
    site.end(signal.SIGKILL, "reports/runs/*/records/*", "run", *rnn, *host, *short[:1], "20", *short[4:])
    site.end(
        signal.SIGINT, "reports/interrupted/runs/*/records/*", "run", *NIGHT[1:-4], "--reports", "reports/interrupted"
    )


def nights(site: Site) -> None:
    """Measure nights: the first, an equal one, a harmless change, and a slow-down; then its level is accepted."""
    with receiver():
        site(*NIGHT)
        site(*NIGHT)
        site.planted("np-b", "2.4.6", "\n# nothing of it changes\n")
        site(*NIGHT)
        site.planted("np-b", "2.4.6", SLOW_NUMPY)
        site(*NIGHT)
        shutil.copytree(site.folder, site.folder.parent / "nights-open", symlinks=True)
        site("history", "accept", "np-b", "--reason", "as planted")
        site(*NIGHT)
        shutil.copytree(site.folder, site.folder.parent / "nights-killed", symlinks=True)
        killed = Site(site.folder.parent / "nights-killed")
        killed.planted("np-b", "2.4.6", SLOW_NUMPY)
        killed.end(signal.SIGKILL, "reports/nights/*/runs/*/records/*", *NIGHT)


def search(site: Site) -> None:
    """Search a planted slow-down."""
    for name, release, code in (("np-c", "2.4.5", SLOW_NUMPY), ("np-d", "2.4.6", SLOW_NUMPY)):
        site.planted(name, release, code, "np-a")
    (site.folder / "matrix.yaml").write_text(SEARCH)
    ends = ("--good", "np-a", "--bad", "np-d")
    site("bisect", CELL, *ends, "--device", "cpu", "--backend", "venv", "--busy-ok", "--max-rounds", "8")


def main(folder: Path) -> None:
    """Measure all of it below a folder; what is there stays."""
    os.environ |= {"XDG_CACHE_HOME": str(folder / "cache"), "XDG_STATE_HOME": str(folder / "state")}
    first = Site(folder / "locks")
    if not first.folder.exists():
        (first.folder / "locks").mkdir(parents=True)
        (first.folder / "matrix.yaml").write_text(MATRIX)
        first("lock", "np-a", "np-b")
        first("build", "np-a", "np-b", "--device", "cpu", "--backend", "venv")
    made: dict[str, Callable[[Site], None]] = {"runs": runs, "nights": nights, "search": search}
    for name, make in made.items():
        site = Site(folder / name)
        if not site.folder.exists():
            shutil.copytree(first.folder, site.folder)
            make(site)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute() / "measured")
