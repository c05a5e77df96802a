"""The commands of Slurm, and what their answers mean. None of them needs accounting (``sacct``)."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.core.errors import EngineError, Problem, RunnerError, UsageError

COMMAND_SECONDS = 60.0
LOST = frozenset(["BOOT_FAIL", "CANCELLED", "NODE_FAIL", "PREEMPTED", "REVOKED"])
"""The states of a job that was ended from outside: the same job may well succeed."""
ENDED = LOST | frozenset(["COMPLETED", "DEADLINE", "FAILED", "OUT_OF_MEMORY", "TIMEOUT"])
"""The states of a job that has ended, from `JOB STATE CODES` of squeue(1)."""
SILENT = ("Unable to contact slurm controller", "Socket timed out", "Zero Bytes were transmitted", "in standby mode")
"""What commands print while slurmctld restarts, or its backup takes over; from Slurm's slurm_errno.c."""
REFUSALS = {
    "Invalid partition name": "`sinfo --summarize` lists the partitions",
    "Invalid account": "write account=NAME in the address; `sacctmgr show associations user=$USER` lists yours",
    "Invalid qos": "write qos=NAME in the address; `sacctmgr show associations user=$USER` lists yours",
    "Invalid feature": "`sinfo --format='%P %f'` lists the features that constraint= can name",
    "Invalid generic resource": "`sinfo --format='%P %G'` lists what gres= can name in each partition",
    "Requested node configuration": "no node has as much; `sinfo --format='%P %c %G'` lists the CPUs and gres of nodes",
    "Requested time limit": "`sinfo --format='%P %l'` lists the longest time of each partition",
    "group not permitted": "`scontrol show partition` lists who may use each partition",
    "Job violates accounting/QOS policy": "lower devices= or time= in the address, or choose another qos=",
}
"""Parts of Slurm's messages, from slurm_errno.c -> what to do."""
HELD = frozenset(["JobHeldAdmin", "JobHeldUser", "PartitionDown", "PartitionInactive", "BadConstraints"])
HELD |= frozenset(["PartitionNodeLimit", "PartitionTimeLimit", "AccountNotAllowed", "QOSNotAllowed", "InvalidQOS"])
"""Reasons of pending jobs that time does not change, from `JOB REASON CODES` of squeue(1)."""


class SilentError(EngineError):
    """Slurm's controller does not answer; it may do so later."""


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that Slurm knows.

    Attributes:
        state: such as ``PENDING``.
        node: the node that it runs or ran on; empty before it starts.
        reason: why it is in this state, such as ``Resources``.
    """

    state: str = ""
    node: str = ""
    reason: str = ""


def submit(options: Sequence[str], command: str) -> str:
    """Submit a batch job, and return its number.

    Raises:
        SilentError: Slurm does not answer.
        UsageError: the partition, the account or another option is wrong.
        EngineError: Slurm refuses the job for another reason.
    """
    number = answer(["sbatch", "--parsable", "--no-requeue", *options, f"--wrap=exec {command}"])
    return number.partition(";")[0].strip()  # NUMBER;CLUSTER where there are several clusters


def queue() -> Mapping[str, QueuedJob]:
    """Return number -> job of the jobs of this user that Slurm still knows; raises as ``answer``."""
    lines = answer(["squeue", "--noheader", "--states=all", "--me", "--format=%i|%T|%N|%r"]).splitlines()
    rows = (line.strip().split("|", 3) for line in lines)
    return {number: QueuedJob(*fields) for number, *fields in rows if len(fields) == 3}


def answer(command: Sequence[str]) -> str:
    """Return what a command of Slurm prints.

    Raises:
        RunnerError: it fails; see ``failure``.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise SilentError(Problem(f"{command[0]} gave no answer within {COMMAND_SECONDS:.0f} s")) from error
    except OSError as error:
        raise EngineError(Problem(f"{command[0]} cannot be run: {error.strerror or error}")) from error
    if done.returncode:
        raise failure(command[0], done.stderr)
    return done.stdout


def failure(command: str, output: str) -> RunnerError:
    """Return the error that a command of Slurm has printed."""
    last = (output.strip().splitlines() or ["it gave no reason"])[-1]
    message = last.removeprefix(f"{command}: ").removeprefix("error: ").removeprefix("Batch job submission failed: ")
    if any(part in output for part in SILENT):
        return SilentError(Problem(f"{command}: {message}", hint="`scontrol ping` says whether slurmctld runs"))
    for part, hint in REFUSALS.items():
        if part in output:
            return UsageError(Problem(f"Slurm refuses the job: {message}", hint=hint))
    return EngineError(Problem(f"{command} failed: {message}"))
