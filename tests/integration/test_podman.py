"""Podman behind the Docker SDK: the preset ``heritage`` in NumPy, and tests of Docker's that hold there, too.

What differs is in docs/how-to/podman.md.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest
import yaml

from runner.backends.docker.backend import DockerBackend
from runner.backends.docker.channel import UNKNOWN_MEMORY, DockerChannel
from runner.backends.docker.cleanup import owner, remove_leftover, unneeded_images_and_volumes
from runner.backends.docker.client import is_podman, reachable
from runner.core.errors import GpuError
from runner.core.model import Limits, Provisioned
from tests.integration import test_docker_backend as on_docker
from tests.integration.conftest import ROOT, Runner, containers
from tests.support import needs, podman

pytestmark = pytest.mark.docker  # the base image comes from there

BASE, MIB = on_docker.BASE, on_docker.MIB
client, backend, ready, probe = on_docker.client, on_docker.backend, on_docker.ready, on_docker.probe
run, inside = on_docker.run, on_docker.inside

test_server_measures = on_docker.test_server_in_a_container_measures
test_close_is_final = on_docker.test_close_removes_the_container_and_may_be_repeated
test_words = on_docker.test_ending_of_a_server_has_its_last_output
test_memory_of_a_child = on_docker.test_child_that_exceeds_its_memory_is_killed_and_the_server_survives
test_long_lines = on_docker.test_lines_of_megabytes_pass_both_ways
test_invalid_dockerfile = on_docker.test_invalid_dockerfile_is_a_failed_build


@pytest.fixture(scope="module")
def docker_engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Podman's API, which ``DOCKER_HOST`` leads to; skipped where Podman or Docker, which has the base, is missing."""
    if reachable() is None:
        needs.missing(request.config, "docker", "no container engine answers")
    if reason := podman.missing():
        needs.missing(request.config, "podman", reason)
    with podman.service(BASE) as host, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", host)
        version = reachable(20)
        assert version is not None
        yield version


def smoke(folder: Path) -> None:
    """Add the cases of the shipped preset ``heritage`` that NumPy has, with a round of short samples, to a matrix."""
    shipped = yaml.safe_load((ROOT / "matrix.yaml").read_text())["presets"]["heritage"]
    cases = [case for entry in shipped["select"] if isinstance(entry, dict) for case in entry["cases"]]
    matrix = yaml.safe_load((folder / "matrix.yaml").read_text())
    select = sorted({case for case in cases if case.startswith("rnn-step/")})
    assert select
    matrix["presets"]["heritage"] = {"select": select, "rounds": 1, "max_rounds": 1, "seconds": 0.1}
    del matrix["measure"]  # with controls
    (folder / "matrix.yaml").write_text(json.dumps(matrix))


@pytest.mark.slow
def test_smoke_of_the_preset_heritage(client: docker.DockerClient, runner: Runner) -> None:
    assert is_podman(client)
    smoke(runner.folder)
    built = runner("build")
    assert built.returncode == 0, built.stderr
    done = runner("run", "--preset", "heritage", "--device", "cpu", "--threads", "1")
    assert done.returncode == 0, done.stderr
    records = runner.records()
    assert {record["status"] for record in records} == {"ok"}
    assert {record["facts"]["backend"] for record in records} == {"docker"}
    environments = {record["cell"].split("/")[0] for record in records}
    assert environments >= {"np-old", "np-new", "np-old@plain", "np-new@plain"}
    assert any(environment.endswith("@twin") for environment in environments)
    assert runner.json("compare", "np-old", "np-new", "--format", "json")["rows"]
    assert containers(Path(done.stdout.strip()).parent.name) == []

    assert runner.json("doctor", "--format", "json")["machine"]["engine"]["name"] == "Podman"


def test_container_is_as_closed_as_dockers(inside: Any) -> None:
    result = inside(
        """
        import os, pathlib, socket
        def refused(action):
            try:
                action()
            except OSError:
                return True
        status = pathlib.Path("/proc/self/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines())
        result = {
            "user": (os.getuid(), os.getgid()),
            "capabilities": int(fields["CapBnd"], 16),
            "no new privileges": fields["NoNewPrivs"].strip(),
            "seccomp": fields["Seccomp"].strip(),
            "read-only": refused(lambda: open("/etc/x", "w")),
            "networks": sorted(name for _, name in socket.if_nameindex() if name not in ("tunl0", "sit0", "ip6tnl0")),
            "home": (os.listdir("/work"), os.statvfs("/work").f_blocks * os.statvfs("/work").f_frsize),
            "writes": [refused(lambda: open(folder + "/x", "w")) for folder in ("/work", "/tmp", "/cache/compilers")],
        }
        """
    )
    assert result == {
        "user": [1000, 1000],
        "capabilities": 0,
        "no new privileges": "1",
        "seccomp": "2",
        "read-only": True,
        "networks": ["lo"],
        "home": [[], 32 << 20],
        "writes": [None, None, None],
    }


def test_killed_server_says_what_podman_does_not(ready: Provisioned, probe: bytes, run: str) -> None:
    channel = DockerChannel(ready, Limits(memory=128 * MIB, run=run), owner(), probe)
    try:
        assert on_docker.run_python(channel, "result = len(bytearray(1 << 30))") is None
        kind, sentence = channel.ending()
        assert (kind, UNKNOWN_MEMORY in sentence) == ("crash", True), sentence
    finally:
        channel.close()


def test_gpu_that_podman_cannot_give_is_a_gpu_error(backend: DockerBackend, ready: Provisioned, run: str) -> None:
    with pytest.raises(GpuError, match=r"takes no GPU|no description of this GPU"):
        backend.open(ready, Limits(memory=256 * MIB, run=run, device="GPU-00000000-0000-0000-0000-000000000000"))


def test_base_image_that_is_missing_counts_as_one_that_can_be_pulled(backend: DockerBackend) -> None:
    survey = backend.survey([replace(on_docker.SPEC, environment="other", base="python:3.9-slim")])
    assert (survey.skips, {name: state.kind for name, state in survey.images.items()}) == (
        {},
        {"python:3.9-slim": "registry"},
    )


def test_what_is_left_has_its_names_and_goes(client: docker.DockerClient, ready: Provisioned, run: str) -> None:
    """In Podman's storage, which is this module's own."""
    assert is_podman(client)
    DockerChannel(ready, Limits(memory=256 * MIB, run=run), owner()).close()  # leaves a cache volume
    tag = ready.facts["image"]
    kept = unneeded_images_and_volumes(client, {"numpy": {tag}}, everything=False)
    assert not [left for left in kept if tag == left.name]
    for left in unneeded_images_and_volumes(client, {}, everything=True):
        assert left.kind == "volume" or left.name.startswith(("matrix-runner/", "sha256:")), left
        remove_leftover(client, left)
    names = {name for image in client.api.images() for name in image["RepoTags"] or ()}
    assert names == {f"docker.io/library/{BASE}"}
    volumes = [volume["Name"] for volume in client.api.volumes()["Volumes"]]
    assert not [name for name in volumes if name.startswith("matrix-runner-cache-")]
