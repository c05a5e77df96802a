"""What an engine has and what its registries would give, found without fetching anything."""

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError

from runner.backends.docker.client import FOREIGN, connect, sentence
from runner.backends.docker.options import by_registry
from runner.core.errors import EngineError
from runner.core.model.environments import ImageState

REGISTRY_SECONDS = 5.0
DIGEST_SECONDS = 20.0  # for a digest, which a release is pinned by
CDI_GPU = "nvidia.com/gpu="
FETCH_ELSEWHERE = "pull it where its registry answers, or bring it with `docker save` and `docker load`"
_ANSWERS = frozenset({400, 401, 403, 404})  # what an engine passes on from a registry that is there
# A report is shared, and the name server of this network is nobody's business.
_SERVER = re.compile(r" on [0-9a-f.:\[\]]+:53\b")


def unavailable(names: Sequence[str]) -> dict[str, str]:
    """Return the images that their registries do not give, with what the engine said of each.

    Each registry is asked about one image first; one that is not there is not asked again.
    """
    groups = list(by_registry(names).values())
    if not groups:
        return {}
    with ThreadPoolExecutor(max_workers=8) as pool:
        found: dict[str, str] = {}
        later: list[str] = []
        for group, (said, there) in zip(groups, pool.map(ask, (group[0] for group in groups)), strict=True):
            refused = [group[0]] if there else group
            found.update(dict.fromkeys(refused, said) if said else {})
            later += group[1:] if there else []
        answers = zip(later, pool.map(ask, later), strict=True)
        found.update({name: said for name, (said, _) in answers if said})
    return found


def ask(name: str) -> tuple[str, bool]:
    """Return why a registry does not give an image, empty where it does, and whether the registry is there at all."""
    try:
        with closing(connect(REGISTRY_SECONDS)) as client:
            client.api.inspect_distribution(name)  # type: ignore[no-untyped-call]
    except APIError as error:
        return sentence(error), error.status_code in _ANSWERS
    except (EngineError, *FOREIGN) as error:
        return f"no answer within {REGISTRY_SECONDS:g} s ({type(error).__name__})", False
    return "", True


def free(client: docker.DockerClient) -> int:
    """Return the bytes free where the engine keeps images; 0 where that is not a folder of this machine."""
    root = Path(str(client.info().get("DockerRootDir") or ""))
    local = "localhost" in str(client.api.base_url) and root.is_absolute() and root.is_dir()
    return shutil.disk_usage(root).free if local else 0


def engine(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an engine's ``info`` says of itself as JSON values.

    ``limits_memory`` says that it can hold a container to an amount of memory, ``gpus`` that it can hand over a GPU.
    """
    devices = [str(entry.get("ID")) for entry in info.get("DiscoveredDevices") or []]
    return {
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
            reason = f"{name} is not on this engine and cannot be pulled ({_SERVER.sub('', refusals[name])})"
            states[name] = ImageState("unavailable", reason, FETCH_ELSEWHERE)
        else:
            states[name] = ImageState("registry" if name in absent else "here")
    return states


def digests(names: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return name -> digest of the images that their registries have, and name -> why not of the others.

    Raises:
        EngineError: no engine answers, which is what talks to registries.
    """
    with closing(connect()):
        pass
    with ThreadPoolExecutor(max_workers=4) as pool:
        answers = dict(zip(names, pool.map(_digest, names), strict=True))
    found = {name: digest for name, (digest, _) in answers.items() if digest}
    return found, {name: why for name, (digest, why) in answers.items() if not digest}


def _digest(name: str) -> tuple[str, str]:
    try:
        with closing(connect(DIGEST_SECONDS)) as client:
            found = client.api.inspect_distribution(name)  # type: ignore[no-untyped-call]
    except APIError as error:
        return "", sentence(error)
    except (EngineError, *FOREIGN) as error:
        return "", f"no answer within {DIGEST_SECONDS:g} s ({type(error).__name__})"
    return str(found["Descriptor"]["digest"]), ""
