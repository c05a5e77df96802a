"""Runs of the real command line: start, read what they store, copy them."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from benchmarks.first_day.settings import ROOT
from runner.backends.docker.client import reachable

COPIED = ("index.html", "report.md", "samples.csv", "plan.json", "machine.json", "environments.json", "journal.jsonl")


def run_folder(reports: Path) -> Path | None:
    """Return the folder of the one run below a reports folder; None before it has its name."""
    return next((path.parent for path in reports.glob("runs/[!.]*/plan.json")), None)


def start(command: Sequence[str], log: Path) -> "subprocess.Popen[bytes]":
    """Start a command with its output in ``log``."""
    with log.open("ab") as stream:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, cwd=ROOT)


def journal(folder: Path) -> list[dict[str, Any]]:
    """Return the complete lines of a run's journal."""
    path = folder / "journal.jsonl"
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def measured(folder: Path) -> list[dict[str, Any]]:
    """Return the events of measured cells, in order."""
    return [event for event in journal(folder) if event["event"] == "measured"]


def records(folder: Path) -> list[dict[str, Any]]:
    """Return the records that the journal names, in order."""
    return [json.loads((folder / event["file"]).read_text("utf-8")) for event in measured(folder)]


def copy(run: Path, target: Path) -> None:
    """Copy what of a run can be sent: its report, plan, facts, records and logs."""
    target.mkdir(parents=True)
    for name in COPIED:
        if (run / name).exists():
            shutil.copy(run / name, target / name)
    for name in ("records", "logs"):
        if (run / name).is_dir():
            shutil.copytree(run / name, target / name)


def containers(run: str) -> list[str]:
    """Return the names of the containers of a run; empty without an engine."""
    if reachable() is None:
        return []
    import docker

    with closing(docker.from_env()) as client:
        listed = client.containers.list(all=True, filters={"label": "io.matrix-runner.run"}, ignore_removed=True)
        return [str(container.name) for container in listed if run in str(container.name)]


def inside(container: str, program: str) -> str:
    """Run a Python program in a container, and return what it prints; empty where the container is gone."""
    import docker

    with closing(docker.from_env()) as client, suppress(docker.errors.APIError):
        output = client.containers.get(container).exec_run(["python3", "-c", program]).output
        return output.decode() if isinstance(output, bytes) else ""
    return ""


def processes() -> Iterator[tuple[int, int, str]]:
    """Yield process id, parent and command line of every process that can be read; zombies are left out."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except (OSError, ValueError):
            continue
        if state != "Z":
            yield int(entry.name), int(parent), line


def below(pid: int) -> list[int]:
    """Return the ids of all processes that a process started, and that they started."""
    parents = {child: parent for child, parent, _ in processes()}
    pids, last = [], {pid}
    while last:
        last = {child for child, parent in parents.items() if parent in last}
        pids += sorted(last)
    return pids


def alive(pids: Sequence[int]) -> list[int]:
    """Return the processes that still run."""
    running = {pid for pid, _, _ in processes()}
    return [pid for pid in pids if pid in running and os.path.exists(f"/proc/{pid}")]  # noqa: PTH110
