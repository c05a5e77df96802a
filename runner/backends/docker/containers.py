"""The end of a container."""

from contextlib import suppress

import docker
from docker.errors import APIError, NotFound


def remove_container(client: docker.DockerClient, container: str) -> None:
    """Kill and remove a container and the volumes that its image declares; return when it is gone."""
    try:
        client.api.remove_container(container, force=True, v=True)  # v: the volumes without a name
    except NotFound:
        return
    except APIError as error:
        if error.status_code != 409:  # 409: the engine is removing it
            raise
    with suppress(NotFound):
        client.api.wait(container, condition="removed", timeout=30)
