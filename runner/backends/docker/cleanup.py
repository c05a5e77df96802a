"""Who started what on an engine, and removing what a dead runner left there; never anything else."""

import os
import socket
import time
from contextlib import suppress
from pathlib import Path

import docker
from docker.errors import APIError, NotFound

from runner.backends.docker.options import OWNER

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_FIELDS = 4
_PAUSE = 0.1


def owner() -> str:
    """Return this process as a label: host, boot, process and the moment it started, so that no number is mistaken."""
    return ":".join((socket.gethostname(), _boot(), str(os.getpid()), _started(os.getpid())))


def abandoned(label: str) -> bool:
    """Say whether a label names a process of this host that is gone; of other hosts and boots nothing is known."""
    parts = label.split(":")
    if len(parts) < _FIELDS or not parts[2].isdigit():
        return False
    host, boot, pid, started = parts[:_FIELDS]
    return (host, boot) == (socket.gethostname(), _boot()) and started != _started(int(pid))


def sweep(client: docker.DockerClient) -> tuple[str, ...]:
    """Remove the containers and half-made images of runners that are gone; return their names."""
    gone = []
    for container in client.api.containers(all=True, filters={"label": OWNER}):
        if abandoned(container["Labels"][OWNER]):
            remove(client, container["Id"])
            gone.append(container["Names"][0].lstrip("/"))
    images = client.api.images(filters={"label": OWNER, "dangling": True})
    dead = [image["Id"] for image in images if abandoned(image["Labels"][OWNER])]
    gone += [image.removeprefix("sha256:")[:12] for image in dead if _forget(client, image)]
    return tuple(gone)


def clear(client: docker.DockerClient, builder: str, seconds: float) -> None:
    """Remove what one broken-off build left, which the engine may be doing itself for up to ``seconds``."""
    label = f"{OWNER}={builder}"
    end = time.monotonic() + seconds
    while left := client.api.containers(all=True, filters={"label": label}):
        if time.monotonic() > end:
            for container in left:
                remove(client, container["Id"])
            break
        time.sleep(_PAUSE)
    for image in client.api.images(filters={"label": label, "dangling": True}):
        _forget(client, image["Id"])


def remove(client: docker.DockerClient, container: str) -> None:
    """Kill and remove a container; return once it is gone."""
    try:
        client.api.remove_container(container, force=True)
    except NotFound:
        return
    except APIError as error:
        if error.status_code != 409:  # 409: it is being removed already
            raise
    with suppress(NotFound):
        client.api.wait(container, condition="removed", timeout=30)


def _forget(client: docker.DockerClient, image: str) -> bool:
    try:
        client.api.remove_image(image)
    except APIError as error:  # gone already, or a container or another image stands on it
        if error.status_code not in {404, 409}:
            raise
        return False
    return True


def _boot() -> str:
    try:
        return _BOOT.read_text("ascii").strip()
    except OSError:
        return "-"


def _started(pid: int) -> str:
    """Return when a process started, in ticks since the boot; empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[19]
    except OSError:
        return ""
