"""Who started what on an engine, and removing what a dead runner left there; never anything else."""

import os
import socket
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, NotFound

from runner.backends.docker.options import CACHE, ENVIRONMENT, OWNER, volume_image
from runner.core.model import Leftover

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


Tags = Mapping[str, Collection[str | None]]


def dead(client: docker.DockerClient) -> tuple[Leftover, ...]:
    """Return the containers of runners that are gone."""
    containers = client.api.containers(all=True, size=True, filters={"label": OWNER})
    return tuple(
        Leftover(
            kind="container",
            name=found["Names"][0].lstrip("/"),
            reason="its runner is gone",
            size=int(found.get("SizeRw") or 0),
        )
        for found in containers
        if abandoned(found["Labels"][OWNER])
    )


def unneeded(client: docker.DockerClient, tags: Tags, *, everything: bool) -> tuple[Leftover, ...]:
    """Return images and cache volumes that are ours and that no container uses.

    Args:
        client: the engine.
        tags: environment -> the names of its images, None among them where they are not known: all of them stay.
        everything: what the environments need counts as well.
    """
    containers = client.api.containers(all=True)
    used = {found["ImageID"] for found in containers if not abandoned((found["Labels"] or {}).get(OWNER, ""))}
    disk = client.df()
    images = [found for found in disk["Images"] or [] if found["Id"] not in used]
    going = {found["Id"]: left for found in images if (left := _image(found, tags, everything=everything))}
    staying = {found["Id"].removeprefix("sha256:")[:12] for found in disk["Images"] or [] if found["Id"] not in going}
    volumes = _volumes(disk["Volumes"] or [], staying, everything=everything)
    return (*going.values(), *volumes)


def _image(found: Mapping[str, Any], tags: Tags, *, everything: bool) -> Leftover | None:
    labels = found["Labels"] or {}
    if ENVIRONMENT not in labels and not labels.get(OWNER):
        return None
    environment = labels.get(ENVIRONMENT, "")
    names = [name for name in found["RepoTags"] or [] if name != "<none>:<none>"]
    current = tags.get(environment, ())
    if labels.get(OWNER):
        reason = "half-made, and its builder is gone" if abandoned(labels[OWNER]) else ""
    elif any(not name.startswith("matrix-runner/") for name in names):
        reason = ""  # somebody gave it a name of their own
    elif everything:
        reason = f"--all; {environment} can be built again"
    elif environment not in tags:
        reason = f"the matrix builds no environment {environment}"
    elif None in current or set(names) & set(current):
        reason = ""
    else:
        reason = f"the lock, the Dockerfile or the base image of {environment} has changed"
    if not reason:
        return None
    size = int(found["Size"]) - max(int(found["SharedSize"]), 0)
    return Leftover(kind="image", name=names[0] if names else found["Id"], reason=reason, size=size)


def _volumes(found: list[dict[str, Any]], images: Collection[str], *, everything: bool) -> Iterator[Leftover]:
    for volume in found:
        name, usage = volume["Name"], volume.get("UsageData") or {}
        if CACHE not in (volume["Labels"] or {}) or usage.get("RefCount"):
            continue
        if everything or volume_image(name) not in images:
            reason = "--all; compilers fill it again" if volume_image(name) in images else "no image is left for it"
            yield Leftover(kind="volume", name=name, reason=reason, size=max(int(usage.get("Size") or 0), 0))


def discard(client: docker.DockerClient, left: Leftover) -> None:
    """Remove one of these; harmless where it is gone already.

    Raises:
        APIError: the engine does not let go of it, for example because a container uses it by now.
    """
    try:
        if left.kind == "container":
            remove(client, left.name)
        elif left.kind == "image":
            client.api.remove_image(left.name)
        else:
            client.api.remove_volume(left.name)
    except NotFound:
        return
