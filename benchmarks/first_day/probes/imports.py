"""What the import of a framework opens and starts: device files and threads, before and after, in a fresh process."""

import os
import sys
import time
from pathlib import Path
from typing import Any

from runner.harness import adapters, procfs

WSL = "/dev/dxg"


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Import ``framework`` as a server does before it forks; return what changed, and how many GPUs are visible."""
    before = _state()
    begin = time.perf_counter()
    adapter: Any = adapters.find(request["framework"])
    version = adapter.load(request["threads"])
    seconds = time.perf_counter() - begin
    after = _state()
    boards = [path for path in Path("/dev").glob("nvidia[0-9]*") if path.name.removeprefix("nvidia").isdigit()]
    return {
        "version": str(version),
        "seconds": seconds,
        "before": before,
        "after": after,
        "forks_after_import": bool(adapter.FORK_AFTER_IMPORT),
        "device_files": len(boards),
        "python": sys.version.split()[0],
    }


def _state() -> dict[str, Any]:
    opened = {os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()}
    with Path("/proc/self/maps").open(encoding="utf-8", errors="replace") as stream:
        libraries = {line.split()[-1] for line in stream if "/libcuda.so" in line or "/libnvidia-ml.so" in line}
    return {
        "devices": procfs.open_devices() + (f", {WSL}" if WSL in opened else ""),
        "threads": procfs.thread_count(),
        "driver_libraries": sorted(Path(path).name for path in libraries),
    }
