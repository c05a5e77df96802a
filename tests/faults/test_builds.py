"""Package indexes that fail, and images, locks and environments that change under a run."""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from runner.backends.docker.backend import DockerBackend
from runner.core.model import Spec
from tests.faults.bench import SMALL, Bench
from tests.faults.declared.builds import BUILD_FAULTS
from tests.faults.fault import Fault
from tests.faults.index import LOCK, index
from tests.integration.conftest import ROOT

VENV = (*SMALL, "np-old", "--backend", "venv")
DOCKERFILE = """\
ARG BASE
FROM ${BASE}
ARG BUILDER=""
LABEL io.matrix-runner.owner="${BUILDER}"
ARG LOCK
COPY ${LOCK} /usr/local/share/lock.txt
"""


def broken_index(bench: Bench) -> None:
    lock = bench.folder / "docker/locks/numpy.txt"
    text = lock.read_text()
    lock.write_text(LOCK)
    with index(bench, bench.fault.id.removeprefix("index-")):
        done = bench("run", *VENV)
    bench.check_seen(done)
    bench.check_cleaned()
    assert half_environments(bench) == []
    lock.write_text(text)
    bench.check_kept()


def half_environments(bench: Bench) -> list[Path]:
    """Return the folders of virtual environments that are not complete."""
    folders = [path for path in (bench.cache / "venvs").iterdir() if path.is_dir()]
    return [path for path in folders if not (path / ".ready").exists()]


def killed_then_run(bench: Bench) -> None:
    with index(bench, "stalls") as server:
        process = bench.start("build", "np-old", "--backend", "venv")
        bench.reached(process, server.requested.is_set)
        process.kill()
        process.communicate()
    assert half_environments(bench)
    bench.check(bench("run", *VENV))
    assert half_environments(bench) == []


@contextmanager
def small_image(bench: Bench) -> Iterator[Callable[[], None]]:
    """An environment of an image that is built in a moment; yields what changes its base under its tag."""
    import docker

    lock = ROOT / "docker/locks/numpy.txt"
    spec = Spec(environment="np-old", framework="numpy", release="2.4.6", base="python:3.11-slim", lock=lock)
    base = DockerBackend(ROOT / "docker").provision(spec, lambda _line: None).handle
    name = f"np-{secrets.token_hex(4)}"
    client = docker.from_env()
    client.api.tag(base, f"faults-{name}", "1")
    matrix = (bench.folder / "matrix.yaml").read_text()
    (bench.folder / "matrix.yaml").write_text(
        matrix.replace("np-old: {", f'{name}: {{base: "faults-{name}:1", '),
    )
    (bench.folder / "docker" / "numpy.Dockerfile").write_text(DOCKERFILE)
    bench.environment["FAULTS_ENGINE"] = bench.environment["FAULTS_IMAGE"] = name

    def change() -> None:
        container = client.containers.create(base, ["true"])
        container.commit(f"faults-{name}", "1", changes=[f"LABEL changed={name}"])
        container.remove()

    try:
        yield change
    finally:
        for volume in client.volumes.list():
            for image in client.images.list(f"matrix-runner/{name}"):
                if str(image.id).removeprefix("sha256:")[:12] in str(volume.name):
                    volume.remove(force=True)
        for image in (*client.images.list(f"matrix-runner/{name}"), *client.images.list(f"faults-{name}")):
            for tag in image.tags:
                with suppress(docker.errors.APIError):
                    if name in tag:
                        client.images.remove(tag, noprune=False)
        client.close()


def changed_base_at_build(bench: Bench) -> None:
    with small_image(bench) as change:
        name = bench.environment["FAULTS_IMAGE"]
        process = bench.start("run", *SMALL, name, "--backend", "docker", pause="runner.session.execution:build")
        bench.paused(process)
        change()
        bench.go_on()
        bench.check(bench.end(process))


def changed_at_resume(bench: Bench) -> None:
    with small_image(bench) as change:
        name = bench.environment["FAULTS_IMAGE"]
        pause = "runner.store.run:append@measured#3"
        process = bench.start("run", *SMALL, name, "--backend", "docker", pause=pause)
        bench.paused(process)
        process.kill()
        process.communicate()
        if bench.fault.id.startswith("base"):
            change()
        else:
            lock = bench.folder / "docker/locks/numpy.txt"
            lock.write_text(lock.read_text() + f"# {name}\n")
        (journal,) = bench.reports.glob("runs/[!.]*/journal.jsonl")
        before = journal.read_bytes()
        bench.check(bench("run", "--resume"))
        assert journal.read_bytes() == before


ACTIONS: Mapping[str, Callable[[Bench], None]] = {
    "index-vanishes": broken_index,
    "index-error": broken_index,
    "index-other-file": broken_index,
    "base-changed-build": changed_base_at_build,
    "base-changed-resume": changed_at_resume,
    "lock-changed-resume": changed_at_resume,
    "build-killed-then-run": killed_then_run,
}


@pytest.mark.parametrize("fault", BUILD_FAULTS, ids=lambda fault: fault.id)
def test_a_build(fault: Fault, bench: Bench, request: pytest.FixtureRequest) -> None:
    if fault.id.endswith("-resume") or fault.id.startswith("base"):
        request.getfixturevalue("docker_engine")
        assert os.environ.get("DOCKER_HOST", "unix://").startswith("unix://")
    ACTIONS[fault.id](bench)
