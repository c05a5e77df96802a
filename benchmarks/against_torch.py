"""The rows of ``benchmarks/agreement.py``, measured by an interpreter that has torch and pyperf.

None is installed for it: a virtual environment for the length of a run sees the packages of the matrix's newest torch,
and after them those of this interpreter, pyperf among them. Where an engine answers, the operations are measured in a
container of that torch as well, beside torch.utils.benchmark in the same process.
"""

import contextlib
import importlib.util
import json
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import agreement
from benchmarks.environments import ROOT, nothing, ready
from benchmarks.table import Row, UnmeasurableError
from runner.backends.docker.cleanup import owner
from runner.backends.docker.client import connect
from runner.backends.docker.options import HARDENED, OWNER, RUN
from runner.core.locks import exclusive
from runner.session.options import Options

CELL = "torch-2.x/nn-lstm/rnn-step/lstm-b32-h128/train/fp32"
TURNS = 8
PACKAGES = "import sysconfig; print(sysconfig.get_path('purelib'))"


def rows() -> Iterator[Row]:
    """Give the harness beside torch.utils.benchmark and pyperf."""
    if importlib.util.find_spec("pyperf") is None:
        raise UnmeasurableError("pyperf is not installed")
    bench = ready([CELL], Options(backend="venv"))
    made = bench.backend.provision(bench.prepared.specs[0], nothing)
    with exclusive(bench.setup.settings.cache / "measuring-cpu.lock", nothing), _interpreter(made.handle) as python:
        for line in agreement.rows(python, TURNS):
            yield Row(f"harness, {line[0]}", *line[1:])


def in_container() -> Iterator[Row]:
    """Give DeepBench's operations in a container, beside torch.utils.benchmark in turns in the same process."""
    bench = ready([CELL], Options(backend="docker"))
    made = bench.backend.provision(bench.prepared.specs[0], nothing)
    with exclusive(bench.setup.settings.cache / "measuring-cpu.lock", nothing):
        for name in agreement.OPERATIONS:
            for peer in agreement.OF_TORCH:
                line = agreement.row(f"{name} in a container", peer, _contained(made.handle, name, peer))
                yield Row(f"harness, {line[0]}", *line[1:])


def _contained(image: str, name: str, peer: str) -> list[agreement.Pair]:
    """Return (ours, theirs) of each turn, measured in a container as hardened as those of a run, but for memory."""
    words = ["python", "/repo/benchmarks/agreement.py", "--inside", name, peer, str(TURNS)]
    here = {str(ROOT): {"bind": "/repo", "mode": "ro"}}
    with contextlib.closing(connect()) as client:
        labels = {RUN: "bench", OWNER: owner()}  # a later run removes it, should this one be killed
        made = client.containers.create(image, words, volumes=here, labels=labels, **HARDENED)
        try:
            made.start()
            made.wait()
            output = made.logs(stderr=False)
        finally:
            made.remove(force=True)
    return [(a, b) for a, b in json.loads(output)]


@contextmanager
def _interpreter(python: str) -> Iterator[str]:
    """Lend an interpreter like ``python`` that has its packages and ours."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
        interpreter = str(Path(folder, "bin", "python"))
        homes = [_packages(python), sysconfig.get_path("purelib")]
        Path(_packages(interpreter), "benchmarks.pth").write_text("\n".join(homes), "utf-8")
        yield interpreter


def _packages(python: str) -> str:
    return subprocess.run([python, "-c", PACKAGES], capture_output=True, text=True, check=True).stdout.strip()
