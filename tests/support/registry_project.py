"""A project whose environment is built on an image of a registry, and what tests do with its images."""

import base64
import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError

from runner.backends.docker.backend import DockerBackend
from runner.backends.docker.claims import forget_uses
from runner.backends.docker.options import CACHE, ENVIRONMENT
from runner.core.model import Provisioned, Spec
from tests.support.image_registry import USER

LOCK = Path(__file__).parents[2] / "docker/locks/numpy.txt"
DOCKERFILE = """\
ARG BASE
FROM ${BASE}
ARG BUILDER=""
LABEL io.matrix-runner.owner="${BUILDER}"
ARG LOCK
COPY ${LOCK} /usr/local/share/lock.txt
"""
MATRIX = """\
version: 1
registry: REGISTRY/team/runner
environments:
  NAME: {framework: numpy, release: "2.*", python: "3.11", base: "REGISTRY/base:1", lock: docker/lock.txt}
workloads:
  rnn-step: {cases: [lstm-b32-h128, rnn-b32-h128, gru-b32-h128], phases: [forward]}
measure: {rounds: 1, max_rounds: 1, seconds: 0.02, threads: 1, controls: false}
"""


@dataclass(frozen=True, slots=True)
class Project:
    """A matrix with one environment, whose base a registry has.

    Attributes:
        folder: holds the matrix.
        name: of the environment, which nobody else has.
        registry: host and port.
    """

    folder: Path
    name: str
    registry: str

    @classmethod
    def create(cls, folder: Path, name: str, registry: str) -> "Project":
        """Write the files of a project to a folder."""
        (folder / "docker").mkdir()
        (folder / "docker" / "numpy.Dockerfile").write_text(DOCKERFILE)
        shutil.copy(LOCK, folder / "docker" / "lock.txt")
        (folder / "matrix.yaml").write_text(MATRIX.replace("NAME", name).replace("REGISTRY", registry))
        return cls(folder, name, registry)

    @property
    def spec(self) -> Spec:
        """What the environment is made from."""
        lock, base = self.folder / "docker" / "lock.txt", f"{self.registry}/base:1"
        return Spec(environment=self.name, framework="numpy", release="2.*", base=base, lock=lock)

    def backend(self, repository: str = "") -> DockerBackend:
        """Return a backend of the engine that DOCKER_HOST names; a matrix may name another repository."""
        return DockerBackend(self.folder / "docker", registry=repository or f"{self.registry}/team/runner")

    def published(self, repository: str = "") -> Provisioned:
        """Make the image and push it, by default to the registry of the matrix."""
        backend = self.backend()
        backend.publish_to(repository or f"{self.registry}/team/runner")
        return backend.provision(self.spec, lambda _line: None)

    def named(self) -> str:
        """Return the image that ``images.toml`` names."""
        (line,) = (line for line in self._file.read_text().splitlines() if line.startswith('"'))
        assert line.startswith(f'"{self.name}-')
        return line.split('"')[3]

    def change_image(self) -> None:
        """Change the recipe of the image, so that the next build makes another one; ``images.toml`` names none."""
        with (self.folder / "docker" / "numpy.Dockerfile").open("a") as file:
            file.write(f"LABEL change={secrets.token_hex(4)}\n")
        self._file.unlink()

    def name_image(self, image: str) -> None:
        """Have ``images.toml`` name another image."""
        self._file.write_text(self._file.read_text().replace(self.named(), image))

    @property
    def _file(self) -> Path:
        return self.folder / "docker" / "images.toml"


@contextmanager
def engine_client(host: str | None = None) -> Iterator[docker.DockerClient]:
    """Give a client of an engine, by default of the one that DOCKER_HOST names."""
    client = docker.DockerClient(base_url=host) if host else docker.from_env()
    try:
        yield client
    finally:
        client.close()


def images_of(client: docker.DockerClient, name: str) -> list[Any]:
    """Return the images of an environment."""
    return client.images.list(filters={"label": f"{ENVIRONMENT}={name}"})


def remove_images(client: docker.DockerClient, name: str) -> None:
    """Remove all images and cache volumes of an environment, and the notes of their uses."""
    for image in images_of(client, name):
        for volume in client.volumes.list(filters={"label": CACHE}):
            if str(image.id).removeprefix("sha256:")[:12] in str(volume.name):
                volume.remove(force=True)
        with suppress(APIError):
            client.images.remove(str(image.id), force=True)
        forget_uses(client, str(image.id))


def log_in(project: Project, address: str, password: str | None) -> None:
    """Do what ``docker login`` does; without a password, what ``docker logout`` does."""
    folder = project.folder / "configuration"
    folder.mkdir(exist_ok=True)
    words = base64.b64encode(f"{USER}:{password}".encode()).decode()
    logins = {} if password is None else {address: {"auth": words}}
    (folder / "config.json").write_text(json.dumps({"auths": logins}))
