"""A real Slurm in a private folder: one node with two stand-in GPUs, whose daemons end with the tests.

The GPUs are device files like /dev/null: Slurm hands them out, and the stand-in for NVIDIA's driver answers for them.
"""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.executables import write_executable
from tests.support.ports import free_port

DAEMONS = ("munged", "slurmctld", "slurmd")
NODE = "localhost"
PARTITION = "gpu"
CONFIGURATION = """\
ClusterName=test
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmdTimeout=6
SchedulerParameters=batch_sched_delay=0,sched_interval=5
Epilog={folder}/epilog
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=5
FirstJobId={first}
SlurmdParameters=config_overrides
NodeName=localhost CPUs=4 Gres=gpu:2 State=UNKNOWN
PartitionName={partition} Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
CGROUPS = Path("/sys/fs/cgroup/freezer")
SECONDS = 120.0
"""After which a daemon that does not answer has failed to start."""


def missing() -> tuple[str, ...]:
    """Return the programs of Slurm and munge that are not installed."""
    return tuple(name for name in DAEMONS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None)


def proctrack() -> str:
    """Return how Slurm can follow the processes of a job on this machine: by control groups of version 1, or not."""
    return "cgroup" if os.access(CGROUPS / "tasks", os.W_OK) else "linuxproc"


@dataclass
class Cluster:
    """Slurm's daemons, whose configuration ``SLURM_CONF`` has to name for its commands.

    Attributes:
        folder: has all of its files.
        proctrack: how it follows processes: ``cgroup`` or ``linuxproc``.
        daemons: name -> process.
    """

    folder: Path
    proctrack: str
    daemons: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def configuration(self) -> Path:
        """The path of ``slurm.conf``."""
        return self.folder / "slurm.conf"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of Slurm's commands and daemons."""
        return {**os.environ, "SLURM_CONF": str(self.configuration), "PATH": f"{os.environ['PATH']}:/usr/sbin"}

    def configure(self) -> None:
        """Write the files that the daemons need."""
        self.folder.chmod(0o755)  # munged refuses a socket that others cannot reach
        munge = self.folder / "munge"
        for path in (munge, self.folder / "state", self.folder / "spool"):
            path.mkdir(mode=0o700)
        (munge / "key").write_bytes(os.urandom(1024))
        (munge / "key").chmod(0o600)
        for number in range(2):
            os.mknod(self.folder / f"gpu{number}", 0o20600, os.makedev(1, 3))  # what /dev/null is
        first = 1 + secrets.randbelow(1 << 25)  # control groups are named by the number of the job alone
        values = {"ports": (free_port(), free_port()), "first": first, "partition": PARTITION}
        content = CONFIGURATION.format(folder=self.folder, proctrack=self.proctrack, **values)
        self.configuration.write_text(content)
        (self.folder / "gres.conf").write_text(f"Name=gpu File={self.folder}/gpu[0-1]\n")
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n")
        self.epilog()

    def epilog(self, *commands: str) -> None:
        """Have slurmd run some commands after each job, without the variables of this process."""
        write_executable(self.folder / "epilog", "\n".join(["#!/bin/sh", *commands, "exit 0", ""]))

    def start(self, name: str) -> None:
        """Start a daemon."""
        munge = self.folder / "munge"
        files = [f"--{name}={munge}/{file}" for name, file in (("key-file", "key"), ("pid-file", "pid"))]
        files += [f"--log-file={munge}/log", f"--seed-file={munge}/seed", f"--socket={self.folder}/munge.socket"]
        commands = {
            "munged": ["munged", "--foreground", "--force", *files],
            "slurmctld": ["slurmctld", "-D"],
            "slurmd": ["slurmd", "-D", "-N", NODE],
        }
        null = subprocess.DEVNULL
        self.daemons[name] = subprocess.Popen(commands[name], env=self.environment, stdout=null, stderr=null)
        if name == "munged":
            self._until((self.folder / "munge.socket").exists, "munged listens")

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """End a daemon by a signal."""
        daemon = self.daemons.pop(name)
        daemon.send_signal(number)
        try:
            daemon.wait(10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def run(self, *command: str) -> str:
        """Return what a command of Slurm prints."""
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True).stdout

    def resume(self) -> None:
        """Have the node take jobs again; one that is down may have come back by itself."""
        with suppress(subprocess.CalledProcessError):
            self.run("scontrol", "update", f"nodename={NODE}", "state=resume")

    def jobs(self, state: str, *names: str) -> tuple[str, ...]:
        """Return the numbers of the jobs in a state; with names, only of jobs that have one of them."""
        options = (f"--states={state}", *(f"--name={name}" for name in names))
        return tuple(self.run("squeue", "--noheader", "--format=%i", *options).split())

    def processes(self, job: str = "") -> tuple[int, ...]:
        """Return the processes of a running job, or of all."""
        marks = (f"SLURM_CONF={self.configuration}".encode(), f"SLURM_JOB_ID={job}".encode())
        files = Path("/proc").glob("[0-9]*/environ")
        return tuple(int(path.parent.name) for path in files if all(mark in _content(path) for mark in marks))

    def clear(self) -> None:
        """Start the daemons that a test has left ended, end all jobs, and have the node take others."""
        for name in [name for name in DAEMONS if name not in self.daemons]:
            self.start(name)
        self._until(self._cancel_all, "slurmctld cancels all jobs")
        self.run("scontrol", "update", f"partitionname={PARTITION}", "state=up")
        self.epilog()
        self.resume()

    def _cancel_all(self) -> bool:
        with suppress(subprocess.CalledProcessError):  # slurmctld may just have started
            self.run("scancel", "--user=root")
            return True
        return False

    @contextmanager
    def no_further_jobs(self) -> Iterator[None]:
        """Let the jobs that wait not start for the length of the block; those that run go on."""
        self.run("scontrol", "update", f"partitionname={PARTITION}", "state=down")
        yield
        self.run("scontrol", "update", f"partitionname={PARTITION}", "state=up")

    def wait_for_node(self, state: str) -> None:
        """Return when the node is in a state, such as ``idle``; raises RuntimeError where that takes too long."""

        def reached() -> bool:
            with suppress(subprocess.CalledProcessError):  # slurmctld may just have started
                return self.run("sinfo", "--noheader", "--format=%T").strip().rstrip("*") == state
            return False

        self._until(reached, f"the node is {state}")

    def _until(self, condition: Callable[[], object], what: str) -> None:
        limit = time.monotonic() + SECONDS
        while not condition():
            if time.monotonic() > limit:
                log = self.folder / "slurmctld.log"
                printed = log.read_text() if log.exists() else ""
                raise RuntimeError(f"of Slurm this has not come true within {SECONDS:g} s: {what}\n{printed}")
            time.sleep(0.1)


@contextmanager
def cluster(proctrack: str = proctrack()) -> Iterator[Cluster]:
    """Start Slurm; it ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    made = Cluster(folder, proctrack)
    made.configure()
    try:
        for name in DAEMONS:
            made.start(name)
        made.wait_for_node("idle")
        yield made
    finally:
        for name in reversed(list(made.daemons)):
            made.stop(name)
        shutil.rmtree(folder, ignore_errors=True)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has just ended
        return b""
