"""Podman of Debian's package as a container engine: its service on a socket, with storage of its own."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.executables import write_executable

START_SECONDS = 180.0
RUNTIME = """\
#!/usr/bin/python3 -IS
import json, os, resource, sys
if "--bundle" in sys.argv:
    path = os.path.join(sys.argv[sys.argv.index("--bundle") + 1], "config.json")
    with open(path) as file:
        config = json.load(file)
    for limit in config["process"].get("rlimits", []):
        most = resource.getrlimit(getattr(resource, limit["type"]))[1]
        if most != resource.RLIM_INFINITY:
            limit.update(hard=min(limit["hard"], most), soft=min(limit["soft"], most))
    with open(path, "w") as file:
        json.dump(config, file)
os.execv(RUNC, [RUNC, *sys.argv[1:]])
"""
"""In front of runc: as root, Podman asks for more open files than a root without CAP_SYS_RESOURCE may give."""


def missing() -> str:
    """Return why there can be no Podman; empty if there can."""
    for program in ("podman", "runc"):
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin") is None:
            return f"{program} is not installed"
    return "" if os.geteuid() == 0 else "Podman with storage of its own needs root"


@contextmanager
def service(base: str) -> Iterator[str]:
    """Run Podman's service until the block ends, with one image of Docker's; give the ``DOCKER_HOST`` that leads to it.

    Args:
        base: the image, by its name; Podman has it under the name that ``podman pull`` gives it.
    """
    folder = Path(tempfile.mkdtemp(prefix="podman-", dir="/tmp"))  # Podman takes 50 characters
    runtime = folder / "runc"
    path = shutil.which("runc", path=f"{os.environ['PATH']}:/usr/sbin")
    write_executable(runtime, RUNTIME.replace("RUNC", json.dumps(path)))
    podman = ["podman", "--root", f"{folder}/root", "--runroot", f"{folder}/run", "--tmpdir", f"{folder}/tmp"]
    podman += ["--runtime", str(runtime), "--cgroup-manager", "cgroupfs", "--events-backend", "file"]
    words = ["pull", "--quiet", f"docker-daemon:{base}"]
    done = subprocess.run([*podman, *words], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    host = f"unix://{folder}/podman.sock"
    with (folder / "log").open("wb") as log:
        command = [*podman, "system", "service", "--time=0", host]
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)  # conmon writes a file ``oom`` there
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
        for words in (["rm", "--all", "--force"], ["rmi", "--all", "--force"]):
            subprocess.run([*podman, *words], capture_output=True, check=False, timeout=120)
        subprocess.run(["umount", f"{folder}/root/overlay"], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)
