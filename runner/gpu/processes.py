"""Describe the processes that compute on a GPU, by number, name and user, as far as this process may see them."""

import pwd
from collections.abc import Sequence
from pathlib import Path

PROC = Path("/proc")
HOST_NAMESPACE = "pid:[4026531836]"
"""The namespace of process numbers outside containers. Source: PROC_PID_INIT_INO in Linux's proc_ns.h."""


def describe(pids: Sequence[int], proc: Path = PROC) -> tuple[str, ...]:
    """Return a description of each process: ``4711 (python3 of ann)``, or ``4711`` where nothing else is visible.

    In a container, NVML's numbers may be those of the host and mean other processes here, so they get no names.
    """
    named = _in_host_namespace(proc)
    return tuple(_described(pid, proc) if named else str(pid) for pid in pids)


def sentence(processes: Sequence[str]) -> str:
    """Return the subject and verb of a sentence about processes.

    >>> sentence(["12 (python3 of ann)"])
    'process 12 (python3 of ann) computes'
    >>> sentence(["12", "13", "14"])
    'processes 12, 13 and 14 compute'
    """
    if len(processes) == 1:
        return f"process {processes[0]} computes"
    return f"processes {', '.join(processes[:-1])} and {processes[-1]} compute"


def _described(pid: int, proc: Path) -> str:
    try:
        name = (proc / str(pid) / "comm").read_text().strip()
        user = (proc / str(pid)).stat().st_uid
    except (OSError, ValueError):  # hidden (proc(5): hidepid), or it has ended
        return str(pid)
    try:
        owner = pwd.getpwuid(user).pw_name
    except KeyError:
        owner = f"#{user}"
    return f"{pid} ({name} of {owner})"


def _in_host_namespace(proc: Path) -> bool:
    try:
        return str((proc / "self/ns/pid").readlink()) == HOST_NAMESPACE
    except OSError:
        return False
