"""What an engine has and what its registries offer; nothing is fetched."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import docker
from docker.errors import APIError

from runner.backends.docker.cache import storage_folder
from runner.backends.docker.client import FOREIGN, connect, sentence
from runner.backends.docker.image_names import by_registry
from runner.backends.docker.refusals import NAME_SERVER, refusal
from runner.core.errors import EngineError
from runner.core.model.provisioning import ImageState
from runner.core.text import REASON_LENGTH, printable

REGISTRY_SECONDS = 5.0
DIGEST_SECONDS = 20.0  # for the digest that an image is pinned to
CDI_GPU = "nvidia.com/gpu="
FETCH_ELSEWHERE = "pull it where its registry answers, or bring it with `docker save` and `docker load`"
NO_QUESTIONS = "Podman asks registries for no digest: use Docker for this, or write the digest by hand"
_ANSWERS = frozenset({400, 401, 403, 404})  # status codes that an engine passes on from a registry that answers


def unavailable(names: Sequence[str]) -> dict[str, str]:
    """Return the images that cannot be pulled, with the engine's message about each.

    Each registry is asked about one image first; a registry that does not answer is not asked again.
    """
    groups = list(by_registry(names).values())
    if not groups:
        return {}
    with ThreadPoolExecutor(max_workers=8) as pool:
        refusals: dict[str, str] = {}
        remaining: list[str] = []
        for group, (message, answered) in zip(groups, pool.map(ask, (group[0] for group in groups)), strict=True):
            refused = [group[0]] if answered else group
            refusals.update(dict.fromkeys(refused, message) if message else {})
            remaining += group[1:] if answered else []
        answers = zip(remaining, pool.map(ask, remaining), strict=True)
        refusals.update({name: message for name, (message, _) in answers if message})
    return refusals


def ask(name: str) -> tuple[str, bool]:
    """Return why an image cannot be pulled, empty if it can or nobody knows, and whether its registry answered."""
    try:
        with closing(connect(REGISTRY_SECONDS)) as client:
            client.api.inspect_distribution(name)  # type: ignore[no-untyped-call]
    except APIError as error:
        if _cannot_ask(error):
            return "", True
        return sentence(error), error.status_code in _ANSWERS
    except (EngineError, *FOREIGN) as error:
        return f"no answer within {REGISTRY_SECONDS:g} s ({type(error).__name__})", False
    return "", True


def _cannot_ask(error: APIError) -> bool:
    """Return whether an engine asks no registries for others: Podman does not, and only a pull finds out.

    It has no such path (https://github.com/containers/podman/issues/17726): of a name without a slash it says so, and
    any other is unknown to it, in a plain answer; Docker's answers are JSON.
    """
    text = error.explanation if isinstance(error.explanation, str) else ""
    return error.status_code == 404 and (text.endswith("is not supported") or text == "Not Found")


def free(client: docker.DockerClient) -> int:
    """Return the free bytes where the engine keeps images; 0 if that is not a folder of this machine."""
    root = storage_folder(client)
    return shutil.disk_usage(root).free if root else 0


def engine(info: Mapping[str, Any], *, podman: bool = False) -> dict[str, Any]:
    """Return the facts about an engine from its ``info``, as JSON values.

    ``limits_memory``: it can limit the memory of a container. ``gpus``: it can give a container a GPU.
    """
    devices = [str(entry.get("ID")) for entry in info.get("DiscoveredDevices") or []]
    return {
        "name": "Podman" if podman else "Docker",
        "version": info.get("ServerVersion"),
        "system": info.get("OperatingSystem"),
        "storage": info.get("Driver"),
        "root": info.get("DockerRootDir"),
        "rootless": any("rootless" in option for option in info.get("SecurityOptions") or []),
        "cores": info.get("NCPU"),
        "memory_bytes": info.get("MemTotal"),
        "limits_memory": bool(info.get("MemoryLimit")),
        "gpus": "nvidia" in (info.get("Runtimes") or {}) or any(name.startswith(CDI_GPU) for name in devices),
    }


def image_states(names: Iterable[str], absent: Sequence[str]) -> dict[str, ImageState]:
    """Return the state of each image by name; ``absent`` are those that the engine does not have."""
    refusals = unavailable(absent)
    states = {}
    for name in dict.fromkeys(names):
        if name in refusals:
            message = printable(NAME_SERVER.sub("", refusals[name]), REASON_LENGTH)
            reason = f"{name} is not on this engine and cannot be pulled ({message})"
            states[name] = ImageState("unavailable", reason, FETCH_ELSEWHERE, refusal(name, refusals[name]).passing)
        else:
            states[name] = ImageState("registry" if name in absent else "here")
    return states


def digests(names: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return name -> digest of the images in their registries, and name -> reason of those without a digest.

    Raises:
        EngineError: no engine answers; it is the engine that asks registries.
    """
    with closing(connect()):
        pass
    with ThreadPoolExecutor(max_workers=4) as pool:
        answers = dict(zip(names, pool.map(digest_of, names), strict=True))
    found_digests = {name: digest for name, (digest, _) in answers.items() if digest}
    return found_digests, {name: reason for name, (digest, reason) in answers.items() if not digest}


def digest_of(name: str) -> tuple[str, str]:
    """Return the digest of an image in its registry, or why there is none."""
    try:
        with closing(connect(DIGEST_SECONDS)) as client:
            distribution = client.api.inspect_distribution(name)  # type: ignore[no-untyped-call]
    except APIError as error:
        return "", NO_QUESTIONS if _cannot_ask(error) else sentence(error)
    except (EngineError, *FOREIGN) as error:
        return "", f"no answer within {DIGEST_SECONDS:g} s ({type(error).__name__})"
    return str(distribution["Descriptor"]["digest"]), ""
