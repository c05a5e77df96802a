"""A bench for each fault, and the JSON of what was observed: ``build/faults/ID.json``."""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.bench import HOST, SMALL, Bench, variables
from tests.faults.fault import Fault, Kept
from tests.integration.conftest import ROOT
from tests.support import needs
from tests.support.engine_socket import EngineSocket

MATRIX = """\
version: 1
environments:
  np-old: {framework: numpy, release: "2.4.6", python: "3.11", lock: docker/locks/numpy.txt}
  np-new: {framework: numpy, release: "2.4.6", python: "3.11", lock: docker/locks/numpy.txt}
workloads:
  rnn-step: {cases: [rnn-b32-h128]}
measure: {controls: false, timeout: 15}
"""
OBSERVED = ROOT / "build" / "faults"


def beside_matrix(folder: Path) -> Path:
    """Return a folder with MATRIX and what it needs."""
    folder.mkdir(exist_ok=True)
    (folder / "matrix.yaml").write_text(MATRIX)
    shutil.copytree(ROOT / "docker", folder / "docker")
    return folder


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what CI runs, and leave out the rest without ``--need faults``."""
    left_out = []
    for item in items:
        fault = item.callspec.params.get("fault") if hasattr(item, "callspec") else None
        if not isinstance(fault, Fault):
            continue
        if fault.smoke:
            item.add_marker(pytest.mark.faults_smoke)
        elif not needs.given(config, "faults"):
            left_out.append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reports folder of a run that was killed with a round and a half measured; see ``Bench.take_over``."""
    fault = Fault(id="unfinished", group="", what="", exits=(), kept=Kept.RESUMABLE)
    made = Bench(beside_matrix(tmp_path_factory.mktemp("unfinished")), {}, fault)
    made.environment = variables(made.folder)
    process = made.start("run", *SMALL, *HOST, pause="runner.store.run:append@measured#4")
    made.paused(process)
    process.kill()
    process.communicate()
    assert len(made.events("measured")) == 3
    return made.reports


@pytest.fixture
def engine(bench: Bench, docker_engine: str) -> Iterator[EngineSocket]:
    """The engine behind a socket that the bench's commands use."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not host.startswith("unix://"):
        pytest.skip("the engine is not at a socket of this machine")
    with tempfile.TemporaryDirectory() as folder:
        made = EngineSocket(Path(folder, "docker.sock"), host.removeprefix("unix://"))
        bench.environment |= {"DOCKER_HOST": f"unix://{made.path}", "FAULTS_ENGINE": docker_engine}
        yield made
        made.flowing.set()
        made.cut()


@pytest.fixture
def bench(fault: Fault, tmp_path: Path) -> Iterator[Bench]:
    """A folder to break the fault's command in; at the end, what was observed is written down."""
    folder = beside_matrix(tmp_path / "b")
    made = Bench(folder, variables(folder), fault)
    begin = time.monotonic()
    yield made
    made.close()
    OBSERVED.mkdir(parents=True, exist_ok=True)
    observed = {"id": fault.id, "group": fault.group, "seconds": round(time.monotonic() - begin, 1), **made.observed}
    (OBSERVED / f"{fault.id}.json").write_text(json.dumps(observed, indent=1) + "\n")
