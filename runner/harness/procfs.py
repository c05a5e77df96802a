"""What the kernel says about a process: its threads, descendants, memory and devices, and how many were killed for memory."""

import ctypes
import os
import resource

OOM_COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control", "/proc/vmstat")
THREADS = "/proc/{}/task"
CHILDREN = "/proc/{}/task/{}/children"  # process ids; only where the kernel has CONFIG_PROC_CHILDREN
STATUS = "/proc/{}/stat"
PR_SET_DUMPABLE = 4  # linux/prctl.h
DEVICE_FILES = ("/dev/nvidia", "/dev/dri", "/dev/kfd", "/dev/dxg")  # the last in WSL 2


def thread_count() -> "int":
    """Return the number of threads of this process."""
    return len(os.listdir("/proc/self/task"))


def control(option: "int", value: "int") -> "bool":
    """Set an option of this process by prctl(2); return whether the kernel and the C library have it."""
    try:
        return ctypes.CDLL(None).prctl(option, *[ctypes.c_ulong(word) for word in (value, 0, 0, 0)]) == 0
    except (OSError, AttributeError):
        return False


def descendants(pid: "int", excluded: "object" = ()) -> "list":
    """Return the ids of the processes that a process has started or adopted, and that these have, parents first.

    Those that have ended and are not waited for are included; the processes in ``excluded`` and theirs are not.
    """
    by_parent = None if os.path.exists(CHILDREN.format(pid, pid)) else children_by_parent()
    pids, parents = [], [pid]
    while parents:
        parent = parents.pop()
        children = listed_children(parent) if by_parent is None else by_parent.get(parent, [])
        new = [child for child in children if child not in excluded and child not in pids]
        pids += new
        parents += new
    return pids


def listed_children(pid: "int") -> "list":
    """Return the ids of the children of a process, thread by thread; empty if it is gone."""
    pids = []
    try:
        for thread in os.listdir(THREADS.format(pid)):
            with open(CHILDREN.format(pid, thread), encoding="ascii") as handle:
                pids += [int(word) for word in handle.read().split()]
    except (OSError, ValueError):
        pass
    return pids


def children_by_parent() -> "dict":
    """Return process id -> ids of its children, of all processes; for kernels that do not list children."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(STATUS.format(name), "rb") as handle:
                    parent = int(handle.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            children.setdefault(parent, []).append(int(name))
    return children


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


def proportional_bytes(pid: "int") -> "int":
    """Return the memory of a process in bytes, where a page that n processes share counts for 1/n; 0 once it is gone.

    Forked processes share most of their pages. It takes milliseconds for each GiB. Where the kernel does not report it
    (before Linux 4.14), the resident set is returned.
    """
    try:
        with open("/proc/{}/smaps_rollup".format(pid), encoding="ascii", errors="replace") as handle:
            return sum(int(line.split()[1]) * 1024 for line in handle if line.startswith("Pss:"))
    except (OSError, ValueError):
        return resident_bytes(pid)


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
