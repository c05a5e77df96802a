"""What a hostile framework would try: ``result`` maps each probe to what it saw; run inside a measuring container."""
# ruff: noqa: PTH101, PTH107, PTH109, PTH110, PTH112, PTH116, PTH118, PTH123, PTH208

import ctypes
import errno
import os
import resource
import socket
import stat
import subprocess
import time
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
CLOSED_FOLDERS = ("/", "/bin", "/etc", "/home", "/mnt", "/opt", "/root", "/run", "/cache", "/usr/local/lib", "/var/tmp")
OPEN_FOLDERS = ("/tmp", "/work", "/cache/compilers", "/dev/shm", "/data")
FLAGS = {"nosuid", "nodev", "noexec"}
KERNEL_FILES = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/vm/drop_caches",
    "/proc/sysrq-trigger",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/fs/cgroup/probe",
)
MASKED = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware", "/proc/acpi", "/proc/scsi")
SECRETS = ("AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "SSH_AUTH_SOCK", "DOCKER_CONFIG", "DOCKER_HOST")
VARIABLES = ("HOME", "USER", "TMPDIR", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
PROXIES = tuple(
    name for lower in ("http", "https", "ftp", "no", "all") for name in (f"{lower}_proxy", f"{lower}_proxy".upper())
)
# x86-64: what changes the kernel, or looks into other processes (asm/unistd_64.h)
CALLS: dict[str, tuple[Any, ...]] = {
    "mount": (165, b"none", b"/tmp", b"tmpfs", 0, 0),
    "umount": (166, b"/proc", 2),
    "chroot": (161, b"/tmp"),
    "pivot_root": (155, b"/tmp", b"/tmp"),
    "setuid": (105, 0),
    "setgid": (106, 0),
    "sethostname": (170, b"x", 1),
    "unshare user": (272, 0x10000000),
    "unshare net": (272, 0x40000000),
    "mknod": (133, b"/tmp/disk", stat.S_IFBLK | 0o600, os.makedev(8, 0)),
    "reboot": (169, 0xFEE1DEAD, 672274793, 0, 0),
    "init_module": (175, b"", 0, b""),
    "bpf": (321, 0, 0, 0),
    "perf_event_open": (298, 0, 0, -1, -1, 0),
    "keyctl": (250, 0, -3, 0),
    "open_by_handle_at": (304, -1, 0, 0),
    "clock_settime": (227, 0, 0),
    "kexec_load": (246, 0, 0, 0, 0),
    "swapon": (167, b"/tmp", 0),
}


def error_of(act: Any) -> str:
    """Return the name of the error that an action fails with, ``done`` if it succeeds."""
    try:
        act()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    return "done"


def write_text(path: str, text: str) -> None:
    """Write a text to a file."""
    with open(path, "w") as handle:
        handle.write(text)


def write_to(folder: str) -> str:
    """Write a program, make it setuid, and start it: ``runs``, ``writes`` if it does not start, or the error."""
    path = os.path.join(folder, "probe")

    def write() -> None:
        write_text(path, "#!/bin/sh\nexit 7\n")
        os.chmod(path, 0o4755)

    error = error_of(write)
    if error != "done":
        return error
    try:
        return "runs" if subprocess.call([path]) == 7 else "?"
    except PermissionError:
        return "writes"
    finally:
        os.remove(path)


def call(number: int, *arguments: Any) -> str:
    """Make a system call; return the name of its error."""
    ctypes.set_errno(0)
    if LIBC.syscall(number, *arguments) >= 0:
        return "done"
    return errno.errorcode[ctypes.get_errno()]


def connect(family: int, kind: int, address: Any) -> str:
    """Return the error of a connection."""

    def act() -> None:
        with socket.socket(family, kind) as connection:
            connection.settimeout(2)
            connection.connect(address)

    return error_of(act)


def packet_socket() -> None:
    """Open a socket that sees every packet."""
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()


def masked(path: str) -> bool:
    """Return True if a file or folder of the kernel is empty or missing."""
    if os.path.isdir(path):
        return not os.listdir(path)
    try:
        with open(path, "rb") as handle:
            return not handle.read(1)
    except OSError:
        return True


def first(*paths: str) -> str:
    """Return the content of the first file that exists."""
    for path in paths:
        if os.path.exists(path):
            with open(path) as handle:
                return handle.read().strip()
    return ""


def owner_and_names(folder: str) -> list[Any]:
    """Return uid, gid and the names of the files in a folder."""
    return [os.stat(folder).st_uid, os.stat(folder).st_gid, os.listdir(folder)]


def mounts() -> dict[str, set[str]]:
    """Return the options of each mount by its folder."""
    with open("/proc/self/mounts") as handle:
        fields = [line.split() for line in handle]
    return {field[1]: {field[2], *field[3].split(",")} for field in fields}


def look() -> dict[str, Any]:
    """Return what each probe saw, as JSON values."""
    with open("/proc/self/status") as handle:
        status = {name: value.strip() for name, _, value in (line.partition(":") for line in handle)}
    of_mounts = mounts()
    processes = [f"/proc/{name}" for name in os.listdir("/proc") if name.isdigit()]
    nodes = [os.path.join(root, name) for root, _, names in os.walk("/dev") for name in names]
    shm = os.statvfs("/dev/shm")
    time.sleep(1.5)  # a health check would have been made
    cgroup = "/sys/fs/cgroup/"
    return {
        "user": [os.getuid(), os.getgid(), os.getgroups()],
        "capabilities": sorted({status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}),
        "no new privileges": status["NoNewPrivs"],
        "seccomp": status["Seccomp"],
        "interfaces": sorted(os.listdir("/sys/class/net")),
        "connect to an address": connect(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 80)),
        "connect to the bridge": connect(socket.AF_INET, socket.SOCK_STREAM, ("172.17.0.1", 22)),
        "send to a name server": connect(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53)),
        "resolve a name": error_of(lambda: socket.getaddrinfo("example.org", 443)),
        "packet socket": error_of(packet_socket),
        "engine's socket": [path for path in ("/var/run/docker.sock", "/run/docker.sock") if os.path.exists(path)],
        "write": {folder: write_to(folder) for folder in (*CLOSED_FOLDERS, *OPEN_FOLDERS)},
        "write to the kernel": {path: error_of(lambda path=path: write_text(path, "0")) for path in KERNEL_FILES},
        "masked": {path: masked(path) for path in MASKED},
        "system calls": {name: call(*arguments) for name, arguments in CALLS.items()},
        "block devices": [path for path in nodes if stat.S_ISBLK(os.lstat(path).st_mode)],
        "devices": sorted(name for name in os.listdir("/dev") if stat.S_ISCHR(os.lstat(f"/dev/{name}").st_mode)),
        "first process": first("/proc/1/comm"),
        "processes": all(os.stat(path).st_uid == os.getuid() for path in processes if os.path.exists(path)),
        "shared memory of others": len(first("/proc/sysvipc/shm").splitlines()) - 1,
        "host name": socket.gethostname(),
        "root": sorted(of_mounts["/"] & {"ro", "rw"}),
        "mounts": sorted(path for path in of_mounts if not path.startswith(("/proc", "/sys", "/dev"))),
        "volumes of the image": {path: sorted(of_mounts[path] & {*FLAGS, "tmpfs"}) for path in ("/data", "/tmp/data")},
        "health check": os.path.exists("/tmp/healthy"),
        "name servers": [line for line in first("/etc/resolv.conf").splitlines() if line.startswith("nameserver")],
        "folder": os.getcwd(),
        "flags": {
            path: sorted(of_mounts[path] & {"nosuid", "nodev", "noexec"}) for path in ("/tmp", "/work", "/dev/shm")
        },
        "sizes": {path: os.statvfs(path).f_blocks * os.statvfs(path).f_frsize for path in ("/tmp", "/work")},
        "shm": shm.f_blocks * shm.f_frsize,
        "memory": first(cgroup + "memory.max", cgroup + "memory/memory.limit_in_bytes"),
        "swap": first(cgroup + "memory.swap.max", cgroup + "memory/memory.memsw.limit_in_bytes"),
        "pids": first(cgroup + "pids.max", cgroup + "pids/pids.max"),
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "secrets": [name for name in SECRETS if name in os.environ],
        "proxies": [name for name in PROXIES if name in os.environ],
        "environment": {name: os.environ.get(name) for name in VARIABLES},
        "cache": [owner_and_names("/cache"), owner_and_names("/cache/compilers")],
        "raise its priority": error_of(lambda: os.nice(-5)),
        "lower its oom score": error_of(lambda: write_text("/proc/self/oom_score_adj", "-500")),
    }


result = look()
