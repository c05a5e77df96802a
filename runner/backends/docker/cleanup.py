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

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import docker
from docker.errors import APIError, NotFound

from runner.backends.docker.cache import disk_usage
from runner.backends.docker.claims import created, forget_uses, uses_of
from runner.backends.docker.containers import remove_container
from runner.backends.docker.image_names import BUILT
from runner.backends.docker.options import CACHE, CHECKOUT, ENVIRONMENT, OF_NETWORKS, OWNER, USE, short_id, volume_image
from runner.backends.uses import Need, Use
from runner.core.model import Leftover
from runner.core.processes import identity as owner
from runner.core.processes import is_gone as is_abandoned

__all__ = ["is_abandoned", "owner"]

_NAME_KEYS = ("RepoTags", "RepoDigests")
_PAUSE_SECONDS = 0.1
_SETTLE_SECONDS = 1.0
NETWORKS_SECONDS = 7 * 24 * 3600.0
"""How long the compilers' results of users' networks stay; each change of a file of theirs makes another volume."""

Tags = Mapping[str, Collection[str | None]]
"""Environment -> the names of its images; None among them if they are unknown."""


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


def nobody(_uses: Collection[Use], _built_by: str) -> Need:
    """Return that nobody else needs an image."""
    return Need()


def unneeded_images_and_volumes(
    client: docker.DockerClient,
    tags: Tags,
    kept: Collection[str] = (),
    *,
    everything: bool,
    need: Callable[[Collection[Use], str], Need] = nobody,
) -> tuple[Leftover, ...]:
    """Return the images and cache volumes with our labels that no container uses and no environment needs.

    Args:
        client: the engine.
        tags: the images that the environments need; an environment with unknown names keeps all of its images.
        kept: ids of images that stay, whatever their names.
        everything: include what the environments need, and what others need; ``Leftover.others`` then names these.
        need: who needs an image, by its uses and its builder; see ``Checkout.need``.
    """
    containers = client.api.containers(all=True)
    used = {
        container["ImageID"] for container in containers if not is_abandoned((container["Labels"] or {}).get(OWNER, ""))
    }
    used |= set(kept)
    disk = disk_usage(client)
    images, volumes = disk["Images"] or [], disk["Volumes"] or []
    uses = uses_of(volumes)
    removable: dict[str, Leftover] = {}
    needs: dict[str, Need] = {}
    for image in images:
        leftover = None if image["Id"] in used else _unneeded_image(image, tags, everything=everything)
        needs[short_id(image["Id"])] = its = _need(image, uses, need)
        if leftover is not None and (everything or not its.keeps):
            removable[image["Id"]] = replace(leftover, others=its.others)
    remaining = {short_id(image["Id"]) for image in images if image["Id"] not in removable}
    idle = [volume for volume in volumes if volume_image(volume["Name"]) not in set(map(short_id, used))]
    unneeded = _unneeded_volumes(idle, remaining, needs, everything=everything)
    return (*removable.values(), *unneeded)


def _need(
    image: Mapping[str, Any],
    uses: Mapping[str, Collection[Use]],
    need: Callable[[Collection[Use], str], Need],
) -> Need:
    """Return who needs an image; nobody needs one that is incomplete, or that this program neither built nor pulled."""
    labels = image["Labels"] or {}
    if ENVIRONMENT not in labels or labels.get(OWNER):
        return Need()
    return need(uses.get(short_id(image["Id"]), ()), builder(image, image["Labels"]))


def builder(image: Mapping[str, Any], labels: Mapping[str, str] | None) -> str:
    """Return which checkout built an image, as ``uses.label`` writes it; empty if that is unknown, or it was pulled."""
    pulled = [name for name in image.get("RepoDigests") or [] if "<none>" not in name]
    return "" if pulled else str((labels or {}).get(CHECKOUT, ""))


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
    volumes: Sequence[Mapping[str, Any]], images: Collection[str], needs: Mapping[str, Need], *, everything: bool
) -> Iterator[Leftover]:
    """Yield the unused cache volumes of images, and the notes about images.

    Args:
        volumes: of the engine, without those of images that a container has: its next server needs them again.
        images: the starts of the ids of the images that stay: without ``everything``, their volumes stay, too.
        needs: start of the id of an image -> who needs it, and so its volumes.
        everything: include the volumes of images that stay.
    """
    for volume in volumes:
        name, usage, labels = volume["Name"], volume.get("UsageData") or {}, volume["Labels"] or {}
        image = labels.get(USE) or volume_image(name)
        if not {CACHE, USE} & labels.keys() or usage.get("RefCount") or (USE in labels and image in needs):
            continue
        is_left = image in images
        is_old = OF_NETWORKS in name and _age(volume) > NETWORKS_SECONDS
        if everything or is_old or not is_left:
            reason = "it is of networks that a run measured more than a week ago; compilers fill it again"
            if not is_old or not is_left:
                reason = "--all; compilers fill it again" if is_left else "no image is left for it"
            others = needs.get(image, Need()).others
            size = max(int(usage.get("Size") or 0), 0)
            yield Leftover(kind="volume", name=name, reason=reason, size=size, others=others)


def _age(volume: Mapping[str, Any]) -> float:
    """Return the seconds since a volume was made; 0 where its engine does not say that."""
    at = created(volume)
    return time.time() - at if at else 0.0


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
    forget_uses(client, details["Id"])
