"""Podman of Debian's package as a container engine: its service on a socket, with images of its own."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 60.0


def missing() -> str:
    """Return why there can be no Podman; empty if there can."""
    if shutil.which("podman") is None:
        return "Debian's package podman is not installed"
    return "" if os.geteuid() == 0 else "Podman with images of its own needs root"


@contextmanager
def service() -> Iterator[str]:
    """Run Podman's service until the block ends; give the ``DOCKER_HOST`` that leads to it."""
    folder = Path(tempfile.mkdtemp(prefix="podman-"))  # short: sockets are below it
    places = ["--root", f"{folder}/root", "--runroot", f"{folder}/run", "--tmpdir", f"{folder}/tmp"]
    host = f"unix://{folder}/podman.sock"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["podman", *places, "system", "service", "--time=0", host], stdout=log, stderr=log, start_new_session=True
        )
    try:
        limit = time.monotonic() + START_SECONDS
        while not (folder / "podman.sock").exists():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < limit, (folder / "log").read_text()
            time.sleep(0.1)
        yield host
    finally:
        process.terminate()
        process.wait(20)
        subprocess.run(["podman", *places, "system", "reset", "--force"], capture_output=True, check=False, timeout=120)
        shutil.rmtree(folder, ignore_errors=True)
