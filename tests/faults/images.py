"""A build of an image that sleeps, to be broken."""

import subprocess

from tests.faults.bench import Bench


def image_build(bench: Bench) -> "subprocess.Popen[str]":
    """Return a build of an image, as soon as a step of it sleeps in its container."""
    dockerfile = bench.folder / "docker" / "numpy.Dockerfile"
    step = f"RUN sleep 300 # {bench.folder}\nRUN useradd"
    dockerfile.write_text(dockerfile.read_text().replace("RUN useradd", step, 1))
    process = bench.start("build", "np-old", "--backend", "docker")
    bench.reached(process, lambda: sleeping(str(bench.folder)))
    return process


def sleeping(name: str) -> list[str]:
    """Return the containers of build steps with a name in their commands."""
    import docker

    client = docker.from_env()
    try:
        listed = client.containers.list(all=True, ignore_removed=True)
        return [str(container.id) for container in listed if name in str(container.attrs["Args"])]
    finally:
        client.close()
