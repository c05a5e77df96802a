"""What checkouts tell each other on an engine that they share: who uses an image, and which images a run needs now.

The claims are volumes and containers on the engine, where all of its users can read them. A file could not hold them:
each user has a cache folder of their own, and the engine may run on another machine.

- A use of an image is an empty volume with the labels of the image and of the checkout. ``runner clean`` reads them.
- What a run needs is held by a container for each image, which never starts: an engine removes no image that a
  container has, whoever asks it. It has the label of its process, so that it goes as a killed runner's containers do.
"""

import hashlib
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from typing import Any

import docker
from docker.errors import APIError, NotFound
from docker.types import LogConfig

from runner.backends.docker.client import FOREIGN, connect, talking
from runner.backends.docker.containers import remove_container
from runner.backends.docker.options import CHECKOUT, OWNER, USE, short_id
from runner.backends.uses import Use
from runner.core.errors import EngineError

DIGITS = 12
NOTED_SECONDS = 3600.0
"""A use is noted again after this time; ``uses.RECENT_SECONDS`` is much longer."""


def note_use(client: docker.DockerClient, image: str, checkout: str, now: float) -> None:
    """Note on the engine that a checkout uses an image now; an engine that refuses it notes nothing.

    Args:
        client: the engine.
        image: its id.
        checkout: see ``uses.label``.
        now: seconds since the epoch.
    """
    name = f"matrix-runner-use-{short_id(image)}-{hashlib.sha256(checkout.encode()).hexdigest()[:DIGITS]}"
    with suppress(APIError):
        with suppress(NotFound):
            if now - created(client.api.inspect_volume(name)) < NOTED_SECONDS:
                return
            client.api.remove_volume(name)
        client.api.create_volume(name, labels={USE: short_id(image), CHECKOUT: checkout})


def uses_of(volumes: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Use, ...]]:
    """Return the start of the id of an image -> its uses, from the engine's list of volumes."""
    uses: dict[str, tuple[Use, ...]] = {}
    for volume in volumes:
        labels = volume.get("Labels") or {}
        if USE in labels:
            use = Use(str(labels.get(CHECKOUT, "")), created(volume))
            uses[labels[USE]] = (*uses.get(labels[USE], ()), use)
    return uses


def forget_uses(client: docker.DockerClient, image: str) -> None:
    """Remove the notes about an image that is gone."""
    label = f"{USE}={short_id(image)}"
    for volume in client.api.volumes(filters={"label": label}).get("Volumes") or ():
        with suppress(APIError):
            client.api.remove_volume(volume["Name"])


@contextmanager
def held(images: Collection[str], owner: str) -> Iterator[None]:
    """Keep images on the engine for the length of the block.

    Args:
        images: their ids.
        owner: the process that needs them, see ``cleanup.owner``.

    Raises:
        EngineError: the engine stopped answering.
    """
    names: list[str] = []
    try:
        with closing(connect()) as client, talking("the container engine stopped answering"):
            for image in sorted(set(images)):
                names.append(f"matrix-runner-keeps-{short_id(image)}-{secrets.token_hex(4)}")
                with suppress(APIError):  # the images are there as long as nobody removes them
                    _hold(client, image, names[-1], owner)
        yield
    finally:
        with suppress(EngineError, *FOREIGN), closing(connect()) as client:
            for name in names:
                remove_container(client, name)


def _hold(client: docker.DockerClient, image: str, name: str, owner: str) -> None:
    client.api.create_container(
        image,
        command=["true"],
        name=name,
        labels={OWNER: owner},
        network_disabled=True,
        use_config_proxy=False,
        host_config=client.api.create_host_config(log_config=LogConfig(type="none"), network_mode="none"),
    )


def created(volume: Mapping[str, Any]) -> float:
    """Return when a volume was made, in seconds since the epoch; 0 if the engine does not say."""
    with suppress(ValueError):
        return datetime.fromisoformat(str(volume.get("CreatedAt") or "")).timestamp()
    return 0.0
