"""The commands of Slurm, and what their answers mean. None of them needs accounting (``sacct``)."""

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from runner.core.errors import EngineError, Problem, RunnerError, UsageError
from runner.core.text import printable
from runner.core.units import duration

COMMAND_SECONDS = 60.0
POLL_SECONDS = 2.0
"""Between two looks at the queue; Slurm's guide for users asks for more than a second."""
SILENT_SECONDS = 600.0
"""How long Slurm's controller may be silent: the jobs go on without it, and its restart takes a minute or two."""
SHOWN_CHARACTERS = 200  # of an answer that is not understood
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
    "BlockTask violates accounting/QOS policy": "lower devices= or time= in the address, or choose another qos=",
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


@dataclass(slots=True)
class Controller:
    """Slurm's controller, which may be silent for a while.

    Attributes:
        say: takes sentences for the user.
        silent_since: when it first did not answer; None while it answers.
    """

    say: Callable[[str], None]
    silent_since: float | None = None

    def note_silence(self, error: SilentError) -> None:
        """Say once that it does not answer; raise the error where that lasts too long."""
        now = time.monotonic()
        if self.silent_since is None:
            self.silent_since = now
            message = error.problems[0].message
            self.say(f"Slurm does not answer ({message}): the run waits for up to {duration(SILENT_SECONDS)}")
        if now - self.silent_since > SILENT_SECONDS:
            raise error

    def note_answer(self) -> None:
        """Say that it answers again if it did not."""
        if self.silent_since is not None:
            self.silent_since = None
            self.say("Slurm answers again")

    def cancel(self, name: str) -> None:
        """Cancel the jobs of a name, if there are any; wait while the controller is silent."""
        while True:
            try:
                cancel(name)
            except SilentError as error:
                self.note_silence(error)
                time.sleep(POLL_SECONDS)
            else:
                self.note_answer()
                return


def submit(options: Sequence[str], command: str) -> str:
    """Submit a batch job, and return its number.

    Raises:
        SilentError: Slurm does not answer.
        UsageError: the partition, the account or another option is wrong.
        EngineError: Slurm refuses the job for another reason, or its answer is no number.
    """
    printed = answer(["sbatch", "--parsable", "--no-requeue", *options, f"--wrap=exec {command}"])
    number = printed.partition(";")[0].strip()  # NUMBER;CLUSTER where there are several clusters
    if re.fullmatch("[0-9]{1,20}", number) is None:  # the job could neither be followed nor cancelled
        message = f"sbatch printed {printable(printed.strip(), SHOWN_CHARACTERS)!r} and not the number of a job"
        raise EngineError(Problem(message, hint="`sbatch --parsable` prints it; a wrapper of this site may print more"))
    return number


def cancel(name: str) -> None:
    """Cancel the jobs of a name, if there are any; raises as ``answer``."""
    answer(["scancel", f"--name={name}"])


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
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=False, timeout=COMMAND_SECONDS
        )
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


OPTIONS = ("devices", "device", "gres", "time", "account", "qos", "constraint", "cpus-per-task")
"""What an address may set: ``devices`` and ``device`` are the runner's, the others are options of ``sbatch``."""


@dataclass(frozen=True, slots=True)
class Address:
    """A partition, and what jobs ask it for.

    Attributes:
        devices: how many jobs wait or run at the same time.
        device: what each of them measures on: ``cuda`` or ``cpu``.
        options: of ``sbatch``.
    """

    devices: int
    device: str
    options: tuple[str, ...]


def read_address(rest: str) -> Address:
    """Return the address that a user wrote, without its scheme.

    Raises:
        UsageError: it is wrong, or there is no Slurm.
    """
    parts = urlsplit(f"//{rest}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    count = options.pop("devices", "1")
    partition = f"{parts.netloc}{parts.path}"
    good = re.fullmatch(r"[\w.-]+", partition) and re.fullmatch("[1-9][0-9]*", count)
    if not good or set(options) - set(OPTIONS) or "" in options.values():
        hint = f"write slurm://PARTITION?devices=4&gres=gpu:1; its options are {', '.join(OPTIONS)}"
        raise UsageError(Problem(f"slurm://{rest} is not an address", hint=hint))
    if shutil.which("sbatch") is None:
        hint = "start the run on a host that can submit jobs, or load its module of Slurm"
        raise UsageError(Problem("there is no command sbatch", hint=hint))
    device = options.pop("device", "cuda" if "gres" in options else "cpu")
    values = (f"--{name}={value}" for name, value in sorted(options.items()))
    return Address(int(count), device, (f"--partition={partition}", *values))
