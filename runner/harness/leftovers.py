"""What the child of a server leaves behind, processes and files, and their end."""

import ctypes
import hashlib
import os
import signal
import stat
import tempfile
import time

from . import procfs

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h, since Linux 3.4
HASHED_BYTES = 64 << 10
"""Of a file in a server's folders, whose content is compared; a larger block would raise the thresholds of the allocator."""
SHARED_MEMORY = "/proc/sysvipc/shm"  # key, id, permissions, bytes, ...: sysvipc(5)
IPC_RMID = 0  # linux/ipc.h
PAUSE = 0.001  # seconds between two passes over the processes
FOLDERS_VARIABLE = "MATRIX_RUNNER_FOLDERS"
"""Names the folders that belong to a server alone, with colons between them; its container sets it."""
PREFIX = "matrix-runner-"  # of the temporary folder that a server outside of a container has to itself


def adopt_orphans() -> "bool":
    """Become the parent of each descendant whose parent ends, instead of process 1; return whether the kernel can do that."""
    return procfs.control(PR_SET_CHILD_SUBREAPER, 1)


def reap_orphans(excluded: "object") -> "None":
    """Wait for the adopted processes that have ended; up to the first that is in ``excluded``."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None or ended.si_pid in excluded:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)
        except ChildProcessError:
            return


def end_processes(kept: "object", seconds: "float") -> "list":
    """Kill all descendants of this process but those in ``kept``, and wait for them.

    Each pass kills a container or entire process groups, in which no process can escape by a fork, and passes follow each
    other until one meets nothing. Returns the ids of the processes that still exist after ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while kept or has_children():
        pids = procfs.descendants(os.getpid(), kept)
        if not kill_container(kept):
            for pid in pids:
                kill(pid)
        for pid in pids:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass  # its parent is about to end
        if not pids or time.monotonic() > deadline:
            return pids
        time.sleep(PAUSE)
    return []


def kill_container(kept: "object") -> "bool":
    """Kill all processes of the container but this one and the first, by one system call, which no fork escapes.

    Returns False, having done nothing, outside of a container of the server's, and where processes in ``kept`` have to stay.
    """
    if kept or FOLDERS_VARIABLE not in os.environ or 1 not in (os.getpid(), os.getppid()):
        return False
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        pass  # there is none
    return True


def has_children() -> "bool":
    """Return whether this process has a child, running or ended."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def kill(pid: "int") -> "None":
    """Kill a process and its group, unless that is the group of this process."""
    try:
        group = os.getpgid(pid)
        if group != os.getpgid(0):
            os.killpg(group, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # it is gone


def server_folders() -> "list":
    """Return the folders that belong to this server alone; none if nobody made them for it."""
    temporary = os.environ.get("TMPDIR", "")
    if os.path.basename(temporary).startswith(PREFIX):
        return [temporary]
    return [folder for folder in os.environ.get(FOLDERS_VARIABLE, "").split(":") if folder]


class Scratch(object):
    """The temporary folder of a child. With it goes what appeared in the server's folders since: memory, in a container.

    What was there before and has another content goes, too, so that the next child does not read it.
    """

    def __init__(self, folders: "list") -> "None":
        """Make the folder; list what is in ``folders``, the server's folders, before."""
        self.folders = {folder: identity(folder) for folder in folders}
        paths = [os.path.join(parent, name) for parent, name in entries(folders)]
        self.before = {path: fingerprint(path) for path in paths}
        self.segments = set(shared_memory())
        self.folder = tempfile.mkdtemp(prefix="cell-")

    def enter(self) -> "None":
        """Make it the working directory of this process, and where it and its libraries put temporary files."""
        os.environ["TMPDIR"] = tempfile.tempdir = self.folder
        os.chdir(self.folder)

    def accept(self, path: "str") -> "None":
        """Let a file stay as the child has written it."""
        self.before[path] = fingerprint(path)

    def clear(self) -> "None":
        """Remove it, and what is new or changed in the server's folders; a folder that became another one is left alone."""
        for segment in shared_memory():
            if segment not in self.segments:
                ctypes.CDLL(None).shmctl(segment, IPC_RMID, None)
        present = [folder for folder, known in self.folders.items() if known and identity(folder) == known]
        if present or not self.folders:
            remove(self.folder)
        for parent, name in list(entries(present, self.before)):
            remove(os.path.join(parent, name))
        for parent, name in list(entries(present)):
            path = os.path.join(parent, name)
            if fingerprint(path) != self.before.get(path):
                remove(path)


def shared_memory() -> "list":
    """Return the ids of the System V shared memory of this container; none outside, where it may be of others."""
    if FOLDERS_VARIABLE not in os.environ:
        return []
    try:
        with open(SHARED_MEMORY, encoding="ascii") as handle:
            rows = [line.split() for line in handle]
        return [int(row[1]) for row in rows[1:]]
    except (OSError, ValueError, IndexError):
        return []


def identity(folder: "str") -> "object":
    """Return what a folder is to the kernel, wherever it moves; None of a link, and of what is no folder or not there."""
    try:
        status = os.lstat(folder)
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def fingerprint(path: "str") -> "object":
    """Return what is another value once a file has another content; of a link where it leads to, None of the rest.

    A write through a mapping into memory does not change the times of a file in tmpfs, so the content of all but large
    files is read.
    """
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return os.readlink(path)
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > HASHED_BYTES:
            return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb", 0) as file:
            return hashlib.sha256(file.read(HASHED_BYTES)).digest()
    except OSError:
        return None


def entries(folders: "list", known: "object" = None) -> "object":
    """Yield (folder, name) of everything below some folders; with ``known``, paths, only of what is not in it.

    What is below a new folder is left out.
    """
    for top in folders:
        for parent, folder_names, names in os.walk(top):
            for name in folder_names + names:
                if known is None or os.path.join(parent, name) not in known:
                    yield parent, name
            if known is not None:
                folder_names[:] = [name for name in folder_names if os.path.join(parent, name) in known]


def remove(path: "str") -> "None":
    """Remove a file, or a folder with everything in it, however deep; what cannot be removed stays.

    Folders inside move up before they are emptied, so that no path is too long for the kernel.
    """
    if os.path.islink(path) or not os.path.isdir(path):
        unlink(path)
        return
    pending = [path]
    while pending:
        folder = pending.pop()
        try:
            os.chmod(folder, 0o700)
            for name in os.listdir(folder):
                entry = os.path.join(folder, name)
                if os.path.islink(entry) or not os.path.isdir(entry):
                    unlink(entry)
                    continue
                os.chmod(entry, 0o700)
                moved = os.path.join(os.path.dirname(path), PREFIX + os.urandom(8).hex())
                os.rename(entry, moved)
                pending.append(moved)
            os.rmdir(folder)
        except OSError:
            pass


def unlink(path: "str") -> "None":
    """Remove a file, a link or a socket, if that is possible."""
    try:
        os.unlink(path)
    except OSError:
        pass
