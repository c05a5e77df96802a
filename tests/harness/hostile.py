"""An adapter whose implementations leave processes and files, or attack their server; it replaces adapters/numpy.py.

Each misbehaves in its first training step alone.
"""
# ruff: noqa: ANN001, ANN201, ANN202, D101, D102, F401, FBT002, T201
# ruff: noqa: PTH101, PTH102, PTH103, PTH104, PTH106, PTH108, PTH109, PTH110, PTH118, PTH119, PTH120, PTH123, PTH208, PTH211, SIM105, SIM115, UP032
# mypy: ignore-errors

import ctypes
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time

from .faulty import FORK_AFTER_IMPORT, FRAMEWORK, Sound, facts, load


def start(work, daemon=True):
    """Run a function in a process of a session of its own; as a ``daemon``, its parent ends first."""
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if not daemon or os.fork() == 0:
            work()
        os._exit(0)
    if daemon:
        os.waitpid(middle, 0)


def sleep():
    time.sleep(600)


def sleep_deaf():
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    sleep()


class Hostile(Sound):
    """Misbehaves once."""

    slug = "hostile"
    misbehaved = False

    def train(self):
        if not self.misbehaved:
            self.misbehaved = True
            self.misbehave()
        Sound.train(self)

    def misbehave(self):
        pass


class LeavesInGroup(Hostile):
    slug = "leaves-process"

    def misbehave(self):
        if os.fork() == 0:
            sleep()


class Leaves(Hostile):
    slug = "leaves-session"

    def misbehave(self):
        start(sleep, daemon=False)


class Daemon(Hostile):
    slug = "leaves-daemon"

    def misbehave(self):
        start(sleep)


class DeafDaemon(Hostile):
    slug = "leaves-deaf-daemon"

    def misbehave(self):
        start(sleep_deaf)


class StoppedDaemon(Hostile):
    slug = "leaves-stopped-daemon"

    def misbehave(self):
        start(lambda: os.kill(os.getpid(), signal.SIGSTOP))


class Program(Hostile):
    slug = "leaves-program"

    def misbehave(self):
        subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True, close_fds=False
        )


class ManyDaemons(Hostile):
    slug = "leaves-200"

    def misbehave(self):
        for _ in range(200):
            start(sleep)


class PrintingDaemon(Hostile):
    slug = "leaves-printing-daemon"

    def misbehave(self):
        def write():
            while True:
                os.write(1, b"x" * 65536)

        start(write)


class Hopper(Hostile):
    """Processes that fork and end, again and again, each in a new session: a list of them is out of date at once."""

    slug = "leaves-hoppers"

    def misbehave(self):
        end = time.monotonic() + 60

        def hop():
            while time.monotonic() < end:
                if os.fork() != 0:
                    os._exit(0)
                os.setsid()

        for _ in range(5):
            start(hop)


class Orphans(Hostile):
    slug = "makes-orphans"

    def misbehave(self):
        for _ in range(50):
            start(lambda: None)
        time.sleep(2.5)
        status = "/proc/{}/task/{}/children".format(os.getppid(), os.getppid())
        print("children of the server:", len(open(status).read().split()))


class Counts(Hostile):
    slug = "counts-processes"

    def misbehave(self):
        print("processes:", sum(name.isdigit() for name in os.listdir("/proc")))


class DaemonAndExit(Hostile):
    slug = "exits-with-daemon"

    def misbehave(self):
        start(sleep)
        os._exit(3)


class JoinsServer(Hostile):
    slug = "joins-the-servers-group"

    def misbehave(self):
        os.setpgid(0, os.getpgid(os.getppid()))
        sleep()


class Stops(Hostile):
    slug = "stops"

    def misbehave(self):
        os.kill(os.getpid(), signal.SIGSTOP)


class Deaf(Hostile):
    slug = "deaf"

    def misbehave(self):
        sleep_deaf()


class KillsServer(Hostile):
    slug = "kills-server-and-leaves-daemon"

    def misbehave(self):
        start(sleep)
        os.kill(os.getppid(), signal.SIGKILL)
        sleep()


class ClosesAll(Hostile):
    slug = "closes-descriptors"

    def misbehave(self):
        os.closerange(0, 256)


class RealTimeSignal(Hostile):
    slug = "ends-by-real-time-signal"

    def misbehave(self):
        os.kill(os.getpid(), 40)


class Prints(Hostile):
    slug = "prints-300-mib"

    def misbehave(self):
        for _ in range(300 * 16):
            os.write(1, b"x" * 65535 + b"\n")
        os.write(1, b"last words\n")


def pipes():
    """Return the pipes of this process to its server, except its output."""
    descriptors = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if int(name) > 2 and stat.S_ISFIFO(os.fstat(int(name)).st_mode):
                descriptors.append(int(name))
        except OSError:
            pass
    return descriptors


class Forges(Hostile):
    slug = "forges-its-result"

    def misbehave(self):
        for descriptor in pipes():
            os.write(descriptor, json.dumps({"status": "ok", "seconds": [1e-9]}).encode() + b"\n")


class Floods(Hostile):
    slug = "floods-its-result"

    def misbehave(self):
        result = min(pipes())
        while True:
            os.write(result, b"x" * 65536)


class Returns(Hostile):
    """Forks a copy that goes on as if it were the child."""

    slug = "returns-twice"

    def misbehave(self):
        os.fork()


class NestsResult(Hostile):
    slug = "nests-its-result"

    def misbehave(self):
        os.write(min(pipes()), b"[" * 50000 + b"\n")
        sleep()


class Allocates(Hostile):
    slug = "allocates-in-daemon"

    def misbehave(self):
        def allocate():
            hoard = bytearray(os.urandom(1 << 20)) * 400
            sleep()
            return hoard

        start(allocate)
        time.sleep(4)


class SharesMemory(Hostile):
    """Forks processes that share 200 MiB and have little of their own."""

    slug = "shares-memory"

    def misbehave(self):
        self.hoard = bytearray(os.urandom(1 << 20)) * 200
        for _ in range(5):
            start(sleep)
        time.sleep(2.5)
        del self.hoard


class WritesFiles(Hostile):
    slug = "writes-files"

    def misbehave(self):
        server = os.path.dirname(tempfile.gettempdir())
        assert os.path.basename(server).startswith("matrix-runner-")
        print([os.getcwd(), tempfile.gettempdir(), os.environ["TMPDIR"], server])
        for folder in (".", tempfile.gettempdir(), server):
            with open(os.path.join(folder, "data"), "wb") as handle:
                handle.write(bytes(1 << 20))
        os.makedirs(os.path.join(server, "closed", "inner"))
        os.mkfifo(os.path.join(server, "closed", "inner", "fifo"))
        os.symlink("/etc", os.path.join(server, "closed", "etc"))
        os.chmod(os.path.join(server, "closed", "inner"), 0)
        os.chmod(os.path.join(server, "closed"), 0)


class WritesDeep(Hostile):
    slug = "writes-deep"

    def misbehave(self):
        for _ in range(500):  # 5 kB of path; the kernel takes 4
            os.mkdir("deep-deep")
            os.chdir("deep-deep")


class FillsFolders(Hostile):
    """Fills each folder with files, and then takes all memory; in a container alone, where files are memory."""

    slug = "fills-folders"

    def misbehave(self):
        for folder in os.environ["MATRIX_RUNNER_FOLDERS"].split(":"):
            with open(os.path.join(folder, "full"), "wb", buffering=0) as handle:
                try:
                    while True:
                        handle.write(bytes(1 << 20))
                except OSError:
                    pass  # the folder is full
        taken = []
        while True:
            taken.append(b"x" * (1 << 20))


class Bomb(Hostile):
    """Each process forks for ever, in a session of its own; in a container alone, which limits how many there are."""

    slug = "fork-bomb"

    def misbehave(self):
        assert os.environ["MATRIX_RUNNER_FOLDERS"]
        while True:
            try:
                if os.fork() == 0:
                    os.setsid()
            except OSError:
                pass


class OpensServer(Hostile):
    """Tries to open what its server and the first process hold; in a container alone, where it is not root."""

    slug = "opens-its-server"

    def misbehave(self):
        opened = []
        for pid in {os.getppid(), 1}:
            for name in ["mem", "environ"] + ["fd/{}".format(number) for number in range(32)]:
                for flags in (os.O_RDONLY, os.O_WRONLY):
                    try:
                        descriptor = os.open("/proc/{}/{}".format(pid, name), flags | os.O_NONBLOCK)
                    except OSError:
                        continue
                    opened.append((pid, name, flags))
                    for number in range(1, 20):
                        forged = {"id": number, "reply": "result", "status": "ok", "seconds": [1e-6]}
                        try:
                            os.write(descriptor, json.dumps(forged).encode() + b"\n")
                        except OSError:
                            pass
        print("opened:", opened)


class ReadsItself(Hostile):
    slug = "reads-itself"

    def misbehave(self):
        for name in ("environ", "mem", "smaps_rollup"):
            open("/proc/self/" + name, "rb").close()
        with open("/proc/self/oom_score_adj") as handle:
            print("score:", handle.read().strip())


def harness_file():
    """Return the path of the harness of the server."""
    parent = os.path.dirname(tempfile.gettempdir())
    paths = [os.path.join(parent, name, "harness.zip") for name in os.listdir(parent)]
    return next(path for path in paths if os.path.exists(path))


class ChangesHarness(Hostile):
    slug = "changes-the-harness"

    def misbehave(self):
        with open(harness_file(), "r+b") as file:
            file.write(b"not a zip archive")


class RemovesHarness(Hostile):
    slug = "removes-the-harness"

    def misbehave(self):
        path = harness_file()
        os.unlink(path)
        os.rmdir(os.path.dirname(path))


class MovesFolder(Hostile):
    """Has the folder of its server lead to another, beside the cache."""

    slug = "moves-the-servers-folder"

    def misbehave(self):
        server = os.path.dirname(tempfile.gettempdir())
        victim = os.path.join(os.path.dirname(os.environ["XDG_CACHE_HOME"]), "victim")
        os.rename(server, os.path.join(os.path.dirname(victim), "moved"))
        os.symlink(victim, server)


class SharesSegment(Hostile):
    """Leaves System V shared memory; in a container alone, as it would stay."""

    slug = "leaves-shared-memory"

    def misbehave(self):
        assert os.environ["MATRIX_RUNNER_FOLDERS"]
        print("segment:", ctypes.CDLL(None).shmget(0, ctypes.c_size_t(20 << 20), 0o1600))


class CountsSegments(Hostile):
    slug = "counts-segments"

    def misbehave(self):
        with open("/proc/sysvipc/shm") as handle:
            print("segments:", len(handle.readlines()) - 1)


class KeepsSubreaper(Hostile):
    slug = "adopts-orphans-itself"

    def misbehave(self):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
        start(sleep)


IMPLEMENTATIONS = tuple(
    chosen for chosen in globals().values() if isinstance(chosen, type) and issubclass(chosen, Sound)
)
