"""Who removes what from an engine, and when.

1. A server's container removes itself when its server ends (``auto_remove``), and the server ends with its stdin, even
   if the runner is killed. ``close`` of the channel removes a container that is still there, with ``remove_container``.
2. A build that fails or is cancelled removes its containers and its unfinished image, with ``remove_build``.
3. The first ``provision`` of a run removes what killed runners left of both, with ``remove_abandoned``.
4. ``runner clean`` lists ``abandoned_containers`` and ``unneeded_images_and_volumes``, and removes them with
   ``remove_leftover``.

Containers and unfinished images have the label ``OWNER``, which names a process. Something is abandoned if that is a
process of this host and boot that is gone. Objects without these labels are never removed.
"""

import os
import socket
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, NotFound

from runner.backends.docker.cache import disk_usage
from runner.backends.docker.image_names import BUILT
from runner.backends.docker.options import CACHE, CHECKOUT, ENVIRONMENT, OWNER, volume_image
from runner.core.model import Leftover

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_LABEL_FIELDS = 4
_NAME_KEYS = ("RepoTags", "RepoDigests")
BEING_REMOVED = "container state improper"
"""How Podman refuses with status 500 what Docker refuses with 409: the container is being removed already."""
_PAUSE_SECONDS = 0.1
_SETTLE_SECONDS = 1.0

Tags = Mapping[str, Collection[str | None]]
"""Environment -> the names of its images; None among them if they are unknown."""


def owner() -> str:
    """Return the label of this process: host, boot, process id and start time, as process ids are used again."""
    return ":".join((socket.gethostname(), _boot(), str(os.getpid()), _started(os.getpid())))


def is_abandoned(label: str) -> bool:
    """Return True if a label names a process of this host and boot that is gone; nothing is known of other hosts."""
    fields = label.split(":")
    if len(fields) < _LABEL_FIELDS or not fields[2].isdigit():
        return False
    host, boot, pid, started = fields[:_LABEL_FIELDS]
    return (host, boot) == (socket.gethostname(), _boot()) and started != _started(int(pid))


def remove_abandoned(client: docker.DockerClient) -> tuple[str, ...]:
    """Remove the containers and unfinished images of runners that are gone; return their names.

    What the engine refuses to remove stays for the next run.
    """
    removed = []
    for container in client.api.containers(all=True, filters={"label": OWNER}):
        if is_abandoned(container["Labels"][OWNER]):
            with suppress(APIError):
                remove_container(client, container["Id"])
                removed.append(container["Names"][0].lstrip("/"))
    for image in client.api.images(filters={"label": OWNER, "dangling": True}):
        if is_abandoned(image["Labels"][OWNER]):
            with suppress(APIError):
                client.api.remove_image(image["Id"])
                removed.append(image["Id"].removeprefix("sha256:")[:12])
    return tuple(removed)


def remove_build(client: docker.DockerClient, builder: str, seconds: float) -> None:
    """Remove the containers and images of one failed build; the engine has ``seconds`` to remove its own first.

    It returns when there were none for ``_SETTLE_SECONDS``: the engine may begin a step after a build was cancelled.
    """
    label = f"{OWNER}={builder}"
    begin = last = time.monotonic()
    while time.monotonic() - last < _SETTLE_SECONDS:
        if containers := client.api.containers(all=True, filters={"label": label}):
            last = time.monotonic()
        if last - begin > seconds:
            for container in containers:
                remove_container(client, container["Id"])
        for image in () if containers else client.api.images(filters={"label": label, "dangling": True}):
            with suppress(APIError):  # 404: gone; 409: a container or another image uses it
                client.api.remove_image(image["Id"])
        time.sleep(_PAUSE_SECONDS)


def remove_container(client: docker.DockerClient, container: str) -> None:
    """Kill and remove a container and the volumes that its image declares; return when it is gone."""
    try:
        client.api.remove_container(container, force=True, v=True)  # v: the volumes without a name
    except NotFound:
        return
    except APIError as error:
        if is_gone(error):
            return
        if error.status_code != 409 and BEING_REMOVED not in str(error.explanation):
            raise
    try:
        client.api.wait(container, condition="removed", timeout=30)
    except APIError as error:
        if not is_gone(error):
            raise


def is_gone(error: APIError) -> bool:
    """Return whether an engine has no such container; Podman says so with status 500 while it removes one."""
    return isinstance(error, NotFound) or "no such container" in str(error.explanation)


def _boot() -> str:
    try:
        return _BOOT.read_text("ascii").strip()
    except OSError:
        return "-"


def _started(pid: int) -> str:
    """Return when a process started, in ticks since boot; empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[19]
    except OSError:
        return ""


def abandoned_containers(client: docker.DockerClient) -> tuple[Leftover, ...]:
    """Return the containers of runners that are gone."""
    containers = client.api.containers(all=True, size=True, filters={"label": OWNER})
    return tuple(
        Leftover(
            kind="container",
            name=container["Names"][0].lstrip("/"),
            reason="its runner is gone",
            size=int(container.get("SizeRw") or 0),
        )
        for container in containers
        if is_abandoned(container["Labels"][OWNER])
    )


def nobody(_image: str, _built_by: str | None) -> bool:
    """Return False: nobody else uses an image."""
    return False


def unneeded_images_and_volumes(
    client: docker.DockerClient,
    tags: Tags,
    kept: Collection[str] = (),
    *,
    everything: bool,
    needed: Callable[[str, str | None], bool] = nobody,
) -> tuple[Leftover, ...]:
    """Return the images and cache volumes with our labels that no container uses and no environment needs.

    Args:
        client: the engine.
        tags: the images that the environments need; an environment with unknown names keeps all of its images.
        kept: ids of images that stay, whatever their names.
        everything: include what the environments need, and what others need.
        needed: whether somebody else needs an image. It gets the id of the image and the label of the checkout that
            built it. The label is empty for an image without one, and None for an image that was pulled.
    """
    containers = client.api.containers(all=True)
    used = {
        container["ImageID"] for container in containers if not is_abandoned((container["Labels"] or {}).get(OWNER, ""))
    }
    used |= set(kept)
    disk = disk_usage(client)
    images = disk["Images"] or []
    removable: dict[str, Leftover] = {}
    for image in images:
        leftover = None if image["Id"] in used else _unneeded_image(image, tags, everything=everything)
        if leftover is not None and not everything and _is_finished(image) and needed(image["Id"], _builder(image)):
            continue
        if leftover is not None:
            removable[image["Id"]] = leftover
    remaining = {image["Id"].removeprefix("sha256:")[:12] for image in images if image["Id"] not in removable}
    return (*removable.values(), *_unneeded_volumes(disk["Volumes"] or [], remaining, everything=everything))


def _is_finished(image: Mapping[str, Any]) -> bool:
    return not (image["Labels"] or {}).get(OWNER)


def _builder(image: Mapping[str, Any]) -> str | None:
    """Return the label of the checkout that built an image; None where a registry has it."""
    pulled = [name for name in image.get("RepoDigests") or [] if "<none>" not in name]
    return None if pulled else str((image["Labels"] or {}).get(CHECKOUT, ""))


def _unneeded_image(image: Mapping[str, Any], tags: Tags, *, everything: bool) -> Leftover | None:
    labels = image["Labels"] or {}
    if ENVIRONMENT not in labels and not labels.get(OWNER):
        return None
    names, pulled_names = ([name for name in image.get(key) or [] if "<none>" not in name] for key in _NAME_KEYS)
    reason = _reason(labels, names, pulled_names, tags, everything=everything)
    if not reason:
        return None
    size = int(image["Size"]) - max(int(image["SharedSize"]), 0)
    return Leftover(kind="image", name=(*names, *pulled_names, image["Id"])[0], reason=reason, size=size)


def _reason(
    labels: Mapping[str, str], names: Collection[str], pulled_names: Collection[str], tags: Tags, *, everything: bool
) -> str:
    """Return why an image can be removed; empty if it has to stay.

    Args:
        labels: of the image.
        names: those with a tag.
        pulled_names: those with a digest: a registry has the image.
        tags: the names that environments need.
        everything: remove what environments need, too.
    """
    environment, only_pulled = labels.get(ENVIRONMENT, ""), bool(pulled_names) and not names
    if labels.get(OWNER):
        return "unfinished, and the process that built it no longer exists" if is_abandoned(labels[OWNER]) else ""
    if any(not name.startswith(BUILT) for name in names):
        return ""  # somebody gave it a name of their own
    if everything:
        return f"--all; {environment} can be {'pulled' if only_pulled else 'built'} again"
    if environment not in tags:
        return f"the matrix builds no environment {environment}"
    if {*names, *pulled_names} & set(tags[environment]) or (None in tags[environment] and not only_pulled):
        return ""
    changed = f"the lock, the Dockerfile or the base image of {environment} has changed"
    return f"docker/images.toml does not name it for {environment}" if only_pulled else changed


def _unneeded_volumes(
    volumes: Sequence[Mapping[str, Any]], images: Collection[str], *, everything: bool
) -> Iterator[Leftover]:
    """Yield the unused cache volumes of images that are not among ``images``, given by the start of their ids."""
    for volume in volumes:
        name, usage = volume["Name"], volume.get("UsageData") or {}
        if CACHE not in (volume["Labels"] or {}) or usage.get("RefCount"):
            continue
        if everything or volume_image(name) not in images:
            reason = "--all; compilers fill it again" if volume_image(name) in images else "no image is left for it"
            yield Leftover(kind="volume", name=name, reason=reason, size=max(int(usage.get("Size") or 0), 0))


def remove_leftover(client: docker.DockerClient, leftover: Leftover) -> None:
    """Remove a container, an image or a volume; do nothing if it is gone.

    Raises:
        APIError: the engine refuses, for example because a container uses it by now.
    """
    try:
        if leftover.kind == "container":
            remove_container(client, leftover.name)
        elif leftover.kind == "image":
            _remove_image(client, leftover.name)
        else:
            client.api.remove_volume(leftover.name)
    except NotFound:
        return


def _remove_image(client: docker.DockerClient, name: str) -> None:
    """Remove an image with all of its names: an image that was pushed has one with a tag, and one with a digest."""
    details = client.api.inspect_image(name)  # type: ignore[no-untyped-call]
    for each in [other for key in _NAME_KEYS for other in details.get(key) or []] or [name]:
        with suppress(NotFound):  # a name with a digest goes with the last tag of its repository
            client.api.remove_image(each)
