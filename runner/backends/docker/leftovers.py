"""What this program keeps on an engine and nothing needs any more: found by its labels, removed by name."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import docker
from docker.errors import APIError, NotFound

from runner.backends.docker.cleanup import abandoned, remove
from runner.backends.docker.options import CACHE, ENVIRONMENT, OWNER, volume_image
from runner.core.model import Leftover

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


__all__ = ["APIError", "dead", "discard", "unneeded"]
