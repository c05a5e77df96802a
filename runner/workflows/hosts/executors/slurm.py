"""Slurm: a batch job for each task, through ``sbatch`` and ``squeue``; tasks and replies are files that nodes share.

It needs neither accounting (``sacct``) nor pickled code: a job runs ``runner worker`` with the driver's Python.
"""

import re
import secrets
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from runner.core.errors import EngineError, Problem, UsageError
from runner.core.files import read_bounded, write_whole
from runner.workflows.hosts.executors import MAX_REPLY_BYTES, Completion

POLL_SECONDS = 2.0
"""Between two looks at the queue; Slurm's guide for users asks for more than a second."""
COMMAND_SECONDS = 60.0
ENDED = frozenset(
    [
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    ]
)
"""The states of a job that has ended, from `JOB STATE CODES` of squeue(1)."""
SETTLE_SECONDS = 10.0
"""How long a reply may take to appear after its job ended: shared file systems show new files late."""
OPTIONS = ("devices", "device", "gres", "time", "account", "qos", "constraint", "cpus-per-task")


@dataclass(slots=True)
class _Job:
    number: str
    reply: Path
    ended_at: float | None = None
    state: str = ""


class SlurmExecutor:
    """A number of devices of a partition: as many jobs wait or run at the same time."""

    def __init__(self, rest: str, folder: Path) -> None:
        """Read ``PARTITION?devices=4&gres=gpu:1``; keep tasks and replies in ``folder``, which the nodes share.

        Raises:
            UsageError: the address is wrong, or there is no Slurm.
        """
        parts = urlsplit(f"//{rest}")
        options = dict(parse_qsl(parts.query))
        unknown = sorted(set(options) - set(OPTIONS))
        if unknown or not re.fullmatch(r"[\w.-]+", parts.netloc) or not options.get("devices", "1").isdigit():
            hint = f"write slurm://PARTITION?devices=4&gres=gpu:1; its options are {', '.join(OPTIONS)}"
            raise UsageError(Problem(f"slurm://{rest} is not an address", hint=hint))
        if shutil.which("sbatch") is None:
            raise UsageError(Problem("there is no sbatch here", hint="start the driver on a host that can submit jobs"))
        self.count = int(options.pop("devices", "1"))
        self.device = options.pop("device", "cuda" if "gres" in options else "cpu")
        self.sbatch = [f"--partition={parts.netloc}", *(f"--{name}={value}" for name, value in sorted(options.items()))]
        self.folder = folder / f"slurm-{secrets.token_hex(4)}"
        self.jobs: dict[str, _Job] = {}

    def devices(self) -> Mapping[str, str]:
        """See Executor."""
        return {f"slurm-{number}": self.device for number in range(1, self.count + 1)}

    def submit(self, key: str, task: bytes) -> None:
        """See Executor.

        Raises:
            EngineError: Slurm refuses the job.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        name = secrets.token_hex(8)
        request, reply = self.folder / f"{name}.task", self.folder / f"{name}.reply"
        write_whole(request, task)
        command = [sys.executable, "-P", "-m", "runner", "worker", "--task", str(request), "--device", self.device]
        arguments = [
            "sbatch", "--parsable", "--no-requeue", "--job-name=matrix-runner", f"--output={self.folder}/{name}.log",
            *self.sbatch, f"--wrap=exec {shlex.join([*command, '--reply', str(reply)])}",
        ]  # fmt: skip
        number = _answer(arguments).strip().partition(";")[0]
        self.jobs[key] = _Job(number, reply)

    def completed(self, seconds: float) -> Iterable[Completion]:
        """See Executor."""
        limit = time.monotonic() + seconds
        while True:
            completions = [*self._ended()]
            if completions or time.monotonic() > limit:
                return completions
            time.sleep(min(POLL_SECONDS, max(0.0, limit - time.monotonic()) + 0.01))

    def _ended(self) -> Iterable[Completion]:
        if not self.jobs:
            return
        states = self._states()
        for key, job in list(self.jobs.items()):
            with suppress(OSError):
                reply = read_bounded(job.reply, MAX_REPLY_BYTES)
                del self.jobs[key]
                job.reply.unlink()
                yield Completion(key, reply)
                continue
            job.state = states.get(job.number, job.state)
            if job.number not in states or job.state in ENDED:
                job.ended_at = job.ended_at or time.monotonic()
                if time.monotonic() - job.ended_at > SETTLE_SECONDS:
                    del self.jobs[key]
                    yield Completion(
                        key, reason=f"job {job.number} of Slurm ended: {job.state or 'unknown'}", lost=True
                    )

    def _states(self) -> Mapping[str, str]:
        """Return number -> state of the jobs that Slurm still knows."""
        numbers = ",".join(job.number for job in self.jobs.values())
        lines = _answer(["squeue", "--noheader", "--states=all", "--format=%i %T", "--me"]).splitlines()
        known = dict(line.split(maxsplit=1) for line in lines if " " in line)
        return {number: known[number] for number in numbers.split(",") if number in known}

    def close(self) -> None:
        """See Executor."""
        numbers = [job.number for job in self.jobs.values()]
        self.jobs.clear()
        if numbers:
            with suppress(EngineError):
                _answer(["scancel", *numbers])
        with suppress(OSError):
            shutil.rmtree(self.folder)


def _answer(command: Sequence[str]) -> str:
    """Return what a command of Slurm prints; raises EngineError where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(Problem(f"{command[0]} does not answer: {error}")) from error
    if done.returncode:
        message = f"{command[0]} failed: {done.stderr.strip().splitlines()[-1:] or ['no message']}"
        raise EngineError(Problem(message))
    return done.stdout
