"""A real Slurm in a private folder: one node with two stand-in GPUs, whose daemons end with the tests."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd")
PORTS = (16817, 16818)
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
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=5
NodeName=localhost CPUs={cpus} Gres=gpu:2 State=UNKNOWN
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> tuple[str, ...]:
    """Return the programs of Slurm and munge that are not installed."""
    return tuple(name for name in DAEMONS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None)


@contextmanager
def cluster() -> Iterator[Path]:
    """Start Slurm, and give the path of its configuration, which ``SLURM_CONF`` has to name."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    folder.chmod(0o755)  # munged refuses a socket that others cannot reach
    munge = folder / "munge"
    for path in (munge, folder / "state", folder / "spool"):
        path.mkdir(mode=0o700)
    (munge / "key").write_bytes(os.urandom(1024))
    (munge / "key").chmod(0o600)
    for number in range(2):
        os.mknod(folder / f"gpu{number}", 0o20600, os.makedev(1, 3))  # what /dev/null is
    configuration = folder / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(folder=folder, ports=PORTS, cpus=len(os.sched_getaffinity(0))))
    (folder / "gres.conf").write_text(f"Name=gpu File={folder}/gpu[0-1]\n")
    environment = {**os.environ, "SLURM_CONF": str(configuration), "PATH": f"{os.environ['PATH']}:/usr/sbin"}
    files = [
        f"--{name}={munge}/{file}" for name, file in (("key-file", "key"), ("pid-file", "pid"), ("log-file", "log"))
    ]
    commands = (
        ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--seed-file={munge}/seed", *files],
        ["slurmctld", "-D"],
        ["slurmd", "-D", "-N", "localhost"],
    )
    daemons = []
    try:
        for command in commands:
            daemons.append(
                subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            time.sleep(0.5)
        _wait_until_idle(environment)
        yield configuration
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_idle(environment: dict[str, str]) -> None:
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        done = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"], capture_output=True, text=True, env=environment, check=False
        )
        if done.stdout.strip() == "idle":
            return
        time.sleep(0.2)
    raise RuntimeError("Slurm has not become idle")
