"""What a hostile framework can do from inside a measuring container; docs/isolation.md names these tests."""

import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import docker
import pytest

from runner.backends import harness_archive
from runner.backends.docker.backend import DockerBackend
from runner.backends.docker.channel import DockerChannel
from runner.backends.docker.cleanup import owner
from runner.backends.docker.options import cache_volume
from runner.core.model import Limits, Provisioned, Spec

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "data"
BASE = "python:3.11-slim"
MIB = 1 << 20
PROXY = "http://alice:PROXYSECRET@192.0.2.1:3128"
READ_ONLY, REFUSED, UNREACHABLE = "EROFS", "EPERM", "ENETUNREACH"


@pytest.fixture(scope="module")
def proxies(tmp_path_factory: pytest.TempPathFactory, docker_engine: str) -> Iterator[None]:
    """A Docker configuration with a proxy and its password, and the same in this process's environment."""
    assert docker_engine
    folder = tmp_path_factory.mktemp("docker-config")
    proxies = {"default": {"httpProxy": PROXY, "httpsProxy": PROXY, "noProxy": "localhost"}}
    (folder / "config.json").write_text(json.dumps({"proxies": proxies}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_CONFIG", str(folder))
        patch.setenv("AWS_SECRET_ACCESS_KEY", "HOSTSECRET")
        patch.setenv("HF_TOKEN", "HOSTSECRET")
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy"):
            patch.setenv(name, PROXY)
        patch.setenv("no_proxy", "localhost")
        yield


HOSTILE_CONFIG = (
    "VOLUME /data",
    "VOLUME /tmp/data",
    "VOLUME /cache",
    "USER 0:0",
    "WORKDIR /root",
    "HEALTHCHECK --interval=1s CMD touch /tmp/healthy",
    "ENV NVIDIA_VISIBLE_DEVICES=all CUDA_VISIBLE_DEVICES=0,1,2,3",
    'ENTRYPOINT ["/bin/false"]',
)


@pytest.fixture(scope="module")
def ready(proxies: None) -> Iterator[Provisioned]:
    """A pulled image, which asks in its configuration for what it must not get."""
    name = f"contained-{secrets.token_hex(4)}:1"
    with closing(docker.from_env()) as client:
        container = client.api.create_container(BASE, ["true"], use_config_proxy=False)["Id"]
        client.api.commit(container, name.partition(":")[0], "1", changes=list(HOSTILE_CONFIG))
        client.api.remove_container(container)
        spec = Spec(environment="contained", framework="numpy", release="1", image=name)
        yield DockerBackend(ROOT / "docker").provision(spec, pytest.fail)
        client.api.remove_image(name)


@pytest.fixture(scope="module")
def probe_harness(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A harness whose server runs the Python it is sent."""
    folder = tmp_path_factory.mktemp("probe") / "harness"
    shutil.copytree(harness_archive.FOLDER, folder)
    (folder / "server.py").rename(folder / "shipped.py")
    shutil.copy(DATA / "probe.py", folder / "server.py")
    return harness_archive.pack(folder)


@pytest.fixture(scope="module")
def seen(ready: Provisioned, probe_harness: bytes) -> Iterator[dict[str, Any]]:
    """What the probes saw, in a container that is made as every measuring container is."""
    limits = Limits(memory=256 * MIB, run=f"test-{os.getpid()}-{time.monotonic_ns()}")
    with closing(docker.from_env()) as client:
        channel = DockerChannel(ready, limits, owner(), probe_harness)
        try:
            channel.send(json.dumps((DATA / "containment.py").read_text()).encode() + b"\n", 60)
            line = channel.receive(60)
            assert line is not None, channel.ending()
            yield json.loads(line)
        finally:
            channel.close()
            client.api.remove_volume(cache_volume(ready.handle, "cpu"))


VISIBLE = {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}
HELD = {
    "user": [1000, 1000, [1000]],
    "capabilities": ["0" * 16],
    "no new privileges": "1",
    "seccomp": "2",
    "interfaces": ["lo"],
    "connect to an address": UNREACHABLE,
    "connect to the bridge": UNREACHABLE,
    "send to a name server": UNREACHABLE,
    "packet socket": REFUSED,
    "engine's socket": [],
    "block devices": [],
    "first process": "python",
    "processes": True,
    "shared memory of others": 0,
    "root": ["ro"],
    "volumes of the image": {"/data": ["nodev", "nosuid", "tmpfs"], "/tmp/data": ["nodev", "nosuid", "tmpfs"]},
    "health check": False,
    "name servers": ["nameserver 127.0.0.1"],
    "folder": "/tmp",
    "flags": {"/tmp": ["nodev", "nosuid"], "/work": ["nodev", "nosuid"], "/dev/shm": ["nodev", "noexec", "nosuid"]},
    "sizes": {"/tmp": 64 * MIB, "/work": 32 * MIB},
    "shm": 32 * MIB,
    "memory": str(256 * MIB),
    "pids": "2048",
    "core": [0, 0],
    "secrets": [],
    "proxies": [],
    "environment": {"HOME": "/work", "USER": "bench", "TMPDIR": "/tmp", **VISIBLE},
    "cache": [[0, 0, ["compilers"]], [1000, 1000, []]],
    "raise its priority": "EPERM",
    "lower its oom score": "EACCES",
}
"""Probe -> what it sees."""


@pytest.mark.parametrize("name", HELD)
def test_containment(name: str, seen: dict[str, Any]) -> None:
    assert seen[name] == HELD[name]


def test_names_do_not_resolve(seen: dict[str, Any]) -> None:
    assert seen["resolve a name"] != "done"


def test_host_name_is_not_that_of_the_host(seen: dict[str, Any]) -> None:
    assert seen["host name"] != socket.gethostname()


def test_only_temporary_folders_and_the_cache_can_be_written(seen: dict[str, Any]) -> None:
    opened = {"/tmp": "runs", "/work": "runs", "/cache/compilers": "runs", "/dev/shm": "writes", "/data": "runs"}
    assert {folder: answer for folder, answer in seen["write"].items() if answer not in {READ_ONLY, "EACCES"}} == opened


def test_kernel_is_closed(seen: dict[str, Any]) -> None:
    assert set(seen["write to the kernel"].values()) <= {READ_ONLY, "EACCES", REFUSED, "ENOENT"}
    assert set(seen["masked"].values()) == {True}, seen["masked"]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of the system calls are those of x86-64")
def test_system_calls_that_reach_beyond_the_container_are_refused(seen: dict[str, Any]) -> None:
    assert set(seen["system calls"].values()) <= {REFUSED, "ENOSYS"}, seen["system calls"]


def test_devices_are_those_of_every_container(seen: dict[str, Any]) -> None:
    assert set(seen["devices"]) <= {"full", "null", "ptmx", "random", "tty", "urandom", "zero", "console"}


def test_no_folder_of_the_host_is_mounted(seen: dict[str, Any]) -> None:
    assert set(seen["mounts"]) <= {
        *("/", "/tmp", "/work", "/cache"),
        *("/data", "/tmp/data"),  # in memory, see below
        *("/etc/hostname", "/etc/hosts", "/etc/resolv.conf"),  # made by the engine
    }


def test_memory_includes_swap(seen: dict[str, Any]) -> None:
    assert seen["swap"] in {str(256 * MIB), "0"}  # cgroup v1 counts memory and swap together, v2 swap alone
