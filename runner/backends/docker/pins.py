"""What the names of images stand for at this moment, by their registries; nothing is fetched."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from docker.errors import APIError

from runner.backends.docker.client import FOREIGN, connect, sentence
from runner.core.errors import EngineError

REGISTRY_SECONDS = 20.0


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
        with closing(connect(REGISTRY_SECONDS)) as client:
            found = client.api.inspect_distribution(name)  # type: ignore[no-untyped-call]
    except APIError as error:
        return "", sentence(error)
    except (EngineError, *FOREIGN) as error:
        return "", f"no answer within {REGISTRY_SECONDS:g} s ({type(error).__name__})"
    return str(found["Descriptor"]["digest"]), ""
