"""Slurm: a batch job for each task, through ``sbatch`` and ``squeue``; tasks and replies are files that nodes share.

It needs neither accounting (``sacct``) nor pickled code: a job runs ``runner worker`` with the driver's Python.

A job that is cancelled restores the clocks of its GPU itself, when it gets SIGTERM. One that is killed at once dies
with its guardian: then a further job on the same node restores them, unless the node's epilog or the next run did.
"""

import re
import secrets
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from runner.core.errors import Problem, RunnerError, UsageError
from runner.core.files import write_whole
from runner.core.units import duration
from runner.workflows.hosts import tasks
from runner.workflows.hosts.executors import Completion, slurm_commands, slurm_leftovers
from runner.workflows.hosts.executors.slurm_commands import ENDED, HELD, LOST, QueuedJob, SilentError

PROGRAM: tuple[str, ...] = (sys.executable, "-P", "-m", "runner")
"""What a job runs."""
POLL_SECONDS = 2.0
"""Between two looks at the queue; Slurm's guide for users asks for more than a second."""
SETTLE_SECONDS = 10.0
"""How long a reply may take to appear after its job ended: shared file systems show new files late."""
SILENT_SECONDS = 600.0
"""How long Slurm's controller may be silent: the jobs go on without it, and its restart takes a minute or two."""
WAIT_SECONDS = 10.0
"""After which the reason of a job that still waits is printed."""
RESTORE_OPTIONS = ("--job-name=matrix-runner-clocks", "--output=/dev/null", "--time=5", "--deadline=now+1hours")
"""Of a job that restores clocks: it needs seconds, and Slurm removes it where its node does not come back."""
OPTIONS = ("devices", "device", "gres", "time", "account", "qos", "constraint", "cpus-per-task")


@dataclass(slots=True)
class _Job:
    """A task in the hands of Slurm: ``path`` with a suffix are its files; ``number`` is empty until Slurm takes it."""

    path: Path
    number: str = ""
    seen: QueuedJob = field(default_factory=QueuedJob)
    submitted: float = 0.0
    ended: float | None = None

    def file(self, suffix: str) -> Path:
        return self.path.with_suffix(suffix)


class SlurmExecutor:
    """A number of devices of a partition: as many jobs wait or run at the same time."""

    def __init__(self, rest: str, folder: Path, say: Callable[[str], None] = lambda _: None) -> None:
        """Read ``PARTITION?devices=4&gres=gpu:1``; keep tasks and replies in ``folder``, which the nodes share.

        Args:
            rest: the address without its scheme.
            folder: where the folder of this executor is made.
            say: takes sentences for the user: why jobs wait, and whose clocks are restored.

        Raises:
            UsageError: the address is wrong, or there is no Slurm.
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
        self.count = int(count)
        self.device = options.pop("device", "cuda" if "gres" in options else "cpu")
        self.sbatch = [f"--partition={parts.netloc}", *(f"--{name}={value}" for name, value in sorted(options.items()))]
        self.reports = folder
        self.folder = folder / f"slurm-{secrets.token_hex(4)}"
        self.say = say
        self.jobs: dict[str, _Job] = {}
        self.reasons: set[str] = set()
        self.kept: set[Path] = set()
        self.silent_since: float | None = None

    def devices(self) -> Mapping[str, str]:
        """See Executor."""
        return {f"slurm-{number}": self.device for number in range(1, self.count + 1)}

    def submit(self, key: str, task: bytes) -> None:
        """See Executor.

        Raises:
            UsageError: the partition, the account or another option is wrong.
            EngineError: Slurm refuses the job for another reason.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        job = self.jobs[key] = _Job(self.folder / secrets.token_hex(8))
        write_whole(job.file(".task"), task)
        try:
            self._send(job)
        except SilentError as error:  # ``_queue`` tries again
            self._note_silence(error)

    def _send(self, job: _Job) -> None:
        files = ("--task", str(job.file(".task")), "--reply", str(job.file(".reply")))
        command = shlex.join([*PROGRAM, "worker", "--device", self.device, *files])
        options = (f"--job-name={slurm_leftovers.job_name(job.path)}", f"--output={job.file('.log')}", *self.sbatch)
        job.number = slurm_commands.submit(options, command)
        job.submitted = time.monotonic()

    def completed(self, seconds: float) -> Iterable[Completion]:
        """See Executor."""
        limit = time.monotonic() + seconds
        while True:
            completions = [*self._completions()]
            if completions or time.monotonic() > limit:
                return completions
            time.sleep(min(POLL_SECONDS, max(0.0, limit - time.monotonic()) + 0.01))

    def _completions(self) -> Iterable[Completion]:
        queue = self._queue()
        for key, job in list(self.jobs.items()):
            reply = slurm_leftovers.content(job.file(".reply"))
            if reply is not None:
                del self.jobs[key]
                if tasks.is_refusal(reply):
                    self.kept.add(job.file(".log"))
                    self.say(f"job {job.number} of Slurm failed; its output is in {job.file('.log')}")
                self._remove(job.file(suffix) for suffix in (".reply", ".task", ".log"))
                yield Completion(key, reply)
                continue
            if queue is not None and job.number and self._has_ended(job, queue):
                del self.jobs[key]
                yield Completion(key, reason=self._reason(job), lost=job.seen.state in {"", *LOST})
                self._restore_clocks(job)

    def _queue(self) -> Mapping[str, QueuedJob] | None:
        """Submit the jobs that Slurm has not taken yet, and return those that it knows; None while it is silent."""
        if not self.jobs:
            return {}
        try:
            for job in self.jobs.values():
                if not job.number:
                    self._send(job)
            queue = slurm_commands.queue()
        except SilentError as error:
            self._note_silence(error)
            return None
        if self.silent_since is not None:
            self.silent_since = None
            self.say("Slurm answers again")
        return queue

    def _note_silence(self, error: SilentError) -> None:
        """Say once that Slurm does not answer; raise the error where that lasts too long."""
        now = time.monotonic()
        if self.silent_since is None:
            self.silent_since = now
            message = error.problems[0].message
            self.say(f"Slurm does not answer ({message}): the run waits for up to {duration(SILENT_SECONDS)}")
        if now - self.silent_since > SILENT_SECONDS:
            raise error

    def _has_ended(self, job: _Job, queue: Mapping[str, QueuedJob]) -> bool:
        """Return whether a job ended so long ago that its reply will not appear any more."""
        now = time.monotonic()
        job.seen = queue.get(job.number, job.seen)
        if job.number in queue and job.seen.state not in ENDED:
            job.ended = None
            if job.seen.state == "PENDING" and now - job.submitted > WAIT_SECONDS:
                self._note_wait(job)
            return False
        job.ended = now if job.ended is None else job.ended
        return now - job.ended > SETTLE_SECONDS

    def _note_wait(self, job: _Job) -> None:
        """Say why a job waits, once for each reason."""
        reason = job.seen.reason
        if reason in self.reasons:
            return
        self.reasons.add(reason)
        lasting = ", which does not pass by itself" if reason in HELD else ""
        advice = f"`scontrol show job {job.number}` shows more, and Ctrl-C ends the run"
        self.say(f"job {job.number} of Slurm waits: {reason}{lasting}; {advice}")

    def _reason(self, job: _Job) -> str:
        """Return how a job without a reply ended, and where its output is, which is kept."""
        log, seen = job.file(".log"), job.seen
        where = f" on {seen.node}" if seen.node else ""
        message = f"job {job.number} of Slurm{where} ended: {seen.state or 'it is not in the queue any more'}"
        if seen.state in {"TIMEOUT", "DEADLINE"}:
            message += ": give its block more time with time=2:00:00 in the address"
        if log.is_file() and log.stat().st_size:
            self.kept.add(log)
            return f"{message}; its output is in {log}"
        if seen.state in {"FAILED", "COMPLETED"}:
            return f"{message}; it wrote nothing to {self.folder}: the nodes have to share this folder"
        return message

    def _restore_clocks(self, job: _Job) -> None:
        """Have the clocks restored that a job may have left locked on its node."""
        node = job.seen.node
        if self.device == "cpu" or not node:
            return
        options = [*self.sbatch, *RESTORE_OPTIONS, f"--nodelist={node}"]
        command = shlex.join([*PROGRAM, "clocks", "reset"])
        try:
            number = slurm_commands.submit(options, command)
        except RunnerError as error:
            trouble = error.problems[0].message
            self.say(f"clocks on {node} may still be locked ({trouble}): `runner clocks reset` there restores them")
            return
        self.say(f"job {number} of Slurm restores the clocks on {node} if they are still locked")

    def uncollected(self, tokens: Collection[str]) -> Iterable[bytes]:
        """See Executor."""
        return slurm_leftovers.uncollected(self.reports, tokens)

    def close(self) -> None:
        """See Executor. The output of failed jobs is kept."""
        numbers = [job.number for job in self.jobs.values() if job.number]
        self.jobs.clear()
        if numbers:
            with suppress(RunnerError):
                slurm_commands.answer(["scancel", *numbers])
        with suppress(OSError):
            self._remove(self.folder.iterdir())
            self.folder.rmdir()

    def _remove(self, paths: Iterable[Path]) -> None:
        for path in set(paths) - self.kept:
            with suppress(OSError):
                path.unlink()
