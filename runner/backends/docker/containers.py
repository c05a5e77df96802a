"""The end of a container."""

import docker
from docker.errors import APIError, NotFound

BEING_REMOVED = "container state improper"
"""How Podman refuses with status 500 what Docker refuses with 409: the container is being removed already."""


def remove_container(client: docker.DockerClient, container: str) -> None:
    """Kill and remove a container and the volumes that its image declares; return when it is gone."""
    try:
        client.api.remove_container(container, force=True, v=True)  # v: the volumes without a name
    except NotFound:
        return
    except APIError as error:
        if is_removed(error):
            return
        if error.status_code != 409 and BEING_REMOVED not in str(error.explanation):
            raise
    try:
        client.api.wait(container, condition="removed", timeout=30)
    except APIError as error:
        if not is_removed(error):
            raise


def is_removed(error: APIError) -> bool:
    """Return whether an engine has no such container; Podman says so with status 500 while it removes one."""
    return isinstance(error, NotFound) or "no such container" in str(error.explanation)
