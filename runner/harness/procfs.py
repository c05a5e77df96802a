"""What the kernel says about a process: its threads, its memory, its open devices, and how many were killed for memory."""

import os
import resource

OOM_COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control", "/proc/vmstat")
DEVICE_FILES = ("/dev/nvidia", "/dev/dri", "/dev/kfd", "/dev/dxg")  # the last in WSL 2


def thread_count() -> "int":
    """Return the number of threads of this process."""
    return len(os.listdir("/proc/self/task"))


def open_devices() -> "str":
    """Return the accelerator device files that this process holds open, separated by commas."""
    paths = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink("/proc/self/fd/" + descriptor)
        except OSError:
            continue
        if path.startswith(DEVICE_FILES):
            paths.add(path)
    return ", ".join(sorted(paths))


def resident_bytes(pid: "int") -> "int":
    """Return the resident set of a process in bytes; 0 once the process is gone."""
    try:
        with open("/proc/{}/statm".format(pid), encoding="ascii") as handle:
            return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def swapped_bytes() -> "int":
    """Return how many bytes of this process are in swap; 0 where the kernel does not report it."""
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as handle:
            return sum(int(line.split()[1]) * 1024 for line in handle if line.startswith("VmSwap:"))
    except (OSError, ValueError):
        return 0


def out_of_memory_kills() -> "int":
    """Return how many processes the kernel has killed for memory: in this control group, else on this machine."""
    for path in OOM_COUNTERS:
        try:
            with open(path, encoding="ascii") as handle:
                for line in handle:
                    if line.startswith("oom_kill "):
                        return int(line.split()[1])
        except (OSError, ValueError):
            continue
    return 0


def become_first_oom_victim() -> "None":
    """Make the kernel kill this process before others when memory runs out; turn core files off."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as handle:
            handle.write("1000")
    except OSError:
        pass
