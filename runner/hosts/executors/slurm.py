"""Slurm: a batch job for each task, through ``sbatch`` and ``squeue``; tasks and replies are files that nodes share.

It needs neither accounting (``sacct``) nor pickled code: a job runs ``runner worker`` with the driver's Python.

A job that is cancelled restores the clocks of its GPU itself, when it gets SIGTERM. One that is killed at once dies
with its guardian: then a further job on the same node restores them, unless the node's epilog or the next run did.
"""

import secrets
import shlex
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from typing_extensions import override

from runner.core import locks
from runner.core.errors import RunnerError
from runner.core.files import write_whole
from runner.hosts import tasks
from runner.hosts.executors import slurm_commands, slurm_leftovers
from runner.hosts.executors.executor import Completion, Executor
from runner.hosts.executors.slurm_commands import (
    ENDED,
    HELD,
    LOST,
    POLL_SECONDS,
    Controller,
    QueuedJob,
    SilentError,
    read_address,
)

PROGRAM: tuple[str, ...] = (sys.executable, "-P", "-m", "runner")
"""What a job runs."""
SETTLE_SECONDS = 10.0
"""How long a reply may take to appear after its job ended: shared file systems show new files late."""
UNKNOWN = "an unknown node"
"""Stands for the node of a job that ended before its name was known; no job is kept away from it."""
WAIT_SECONDS = 10.0
"""After which the reason of a job that still waits is printed."""
RESTORE_OPTIONS = ("--job-name=matrix-runner-clocks", "--output=/dev/null", "--time=5", "--deadline=now+1hours")
"""Of a job that restores clocks: it needs seconds, and Slurm removes it where its node does not come back."""


@dataclass(slots=True)
class _Job:
    """A task in the hands of Slurm: ``path`` with a suffix are its files; ``number`` is empty until Slurm takes it."""

    path: Path
    number: str = ""
    avoid: Collection[str] = ()
    tries: int = 0
    seen: QueuedJob = field(default_factory=QueuedJob)
    submitted: float = 0.0
    ended: float | None = None

    def file(self, suffix: str) -> Path:
        return self.path.with_suffix(suffix)

    @property
    def name(self) -> str:
        return slurm_leftovers.job_name(self.path)

    @property
    def has_output(self) -> bool:
        log = self.file(".log")
        return log.is_file() and log.stat().st_size > 0


class SlurmExecutor(Executor):
    """A number of devices of a partition: as many jobs wait or run at the same time."""

    def __init__(self, rest: str, folder: Path, say: Callable[[str], None] = lambda _: None) -> None:
        """Keep tasks and replies in ``folder``, which the nodes share.

        Args:
            rest: the address without its scheme, as ``slurm_commands.read_address`` reads it.
            folder: where the folder of this executor is made.
            say: takes sentences for the user: why jobs wait, and whose clocks are restored.

        Raises:
            UsageError: the address is wrong, or there is no Slurm.
        """
        self.address = read_address(rest)
        self.reports = folder
        self.folder = folder / f"slurm-{secrets.token_hex(4)}"
        self.say = say
        self.jobs: dict[str, _Job] = {}
        self.reasons: set[str] = set()
        self.nodes: set[str] = set()
        self.controller = Controller(say)
        self.lock = ExitStack()

    @override
    def devices(self) -> Mapping[str, str]:
        return {f"slurm-{number}": self.address.device for number in range(1, self.address.devices + 1)}

    @override
    def submit(self, key: str, task: bytes, avoid: Collection[str] = ()) -> None:
        """See Executor.

        Raises:
            UsageError: the partition, the account or another option is wrong.
            EngineError: Slurm refuses the job for another reason.
        """
        if not self.folder.exists():
            self.folder.mkdir(parents=True)
            self.lock.enter_context(locks.hold(self.folder / slurm_leftovers.LOCK, str(self.folder)))
        job = self.jobs[key] = _Job(self.folder / secrets.token_hex(8), avoid=self.nodes.intersection(avoid))
        write_whole(job.file(".task"), task)
        try:
            self._send(job)
        except SilentError as error:  # ``_queue`` tries again
            self.controller.note_silence(error)

    def _send(self, job: _Job) -> None:
        files = ("--task", str(job.file(".task")), "--reply", str(job.file(".reply")))
        command = shlex.join([*PROGRAM, "worker", "--device", self.address.device, *files])
        options = (f"--job-name={job.name}", f"--output={job.file('.log')}", *self.address.options)
        job.tries += 1
        try:
            excluded = [f"--exclude={','.join(sorted(job.avoid))}"] * bool(job.avoid)
            job.number = slurm_commands.submit([*options, *excluded], command)
        except RunnerError as error:
            if not job.avoid or isinstance(error, SilentError):
                raise
            job.avoid, job.number = (), slurm_commands.submit(options, command)  # there are no other nodes
        job.submitted = time.monotonic()

    @override
    def completed(self, seconds: float) -> Iterable[Completion]:
        limit = time.monotonic() + seconds
        while True:
            any_ended = False
            for completion in self._ended():
                any_ended = True
                yield completion
            if any_ended or time.monotonic() > limit:
                return
            time.sleep(min(POLL_SECONDS, max(0.0, limit - time.monotonic()) + 0.01))

    def _ended(self) -> Iterator[Completion]:
        """Yield the tasks that ended; the files of each are removed when the next one is asked for."""
        queue = self._queue()
        for key, job in list(self.jobs.items()):
            job.seen = (queue or {}).get(job.number, job.seen)
            self.nodes |= {job.seen.node} - {""}
            reply = slurm_leftovers.content(job.file(".reply"))
            if reply is None and (queue is None or not job.number or not self._has_ended(job, queue)):
                continue
            del self.jobs[key]
            completion = self._without_reply(key, job) if reply is None else self._with_reply(key, job, reply)
            yield completion
            failed = completion.result is None or tasks.is_refusal(completion.result)
            slurm_leftovers.remove(job.path, keep_log=failed and job.has_output)

    def _with_reply(self, key: str, job: _Job, reply: bytes) -> Completion:
        if tasks.is_refusal(reply):
            self.say(f"job {job.number} of Slurm failed; its output is in {job.file('.log')}")
        if job.tries > 1:
            with suppress(RunnerError):
                slurm_commands.cancel(job.name)  # a job of an earlier try may have replied
        return Completion(key, reply, host=job.seen.node or UNKNOWN)

    def _without_reply(self, key: str, job: _Job) -> Completion:
        lost = job.seen.state in {"", *LOST}
        self._restore_clocks(job)
        return Completion(key, reason=self._reason(job), lost=lost, host=job.seen.node or UNKNOWN)

    def _queue(self) -> Mapping[str, QueuedJob] | None:
        """Submit the jobs that Slurm has not taken yet, and return those that it knows; None while it is silent."""
        if not self.jobs:
            return {}
        try:
            for job in self.jobs.values():
                if not job.number and not job.file(".reply").exists():
                    slurm_commands.cancel(job.name)  # Slurm may have taken it, and its answer was lost
                    self._send(job)
            queue = slurm_commands.queue()
        except SilentError as error:
            self.controller.note_silence(error)
            return None
        self.controller.note_answer()
        return queue

    def _has_ended(self, job: _Job, queue: Mapping[str, QueuedJob]) -> bool:
        """Return whether a job ended so long ago that its reply will not appear any more."""
        now = time.monotonic()
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
        if job.avoid and reason.startswith("ReqNodeNotAvail"):
            job.avoid, job.number = (), ""  # ``_queue`` cancels it, and submits it again for any node
            return
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
        if job.has_output:
            return f"{message}; its output is in {log}"
        if seen.state in {"FAILED", "COMPLETED"}:
            return f"{message}; it wrote nothing to {self.folder}: the nodes have to share this folder"
        return message

    def _restore_clocks(self, job: _Job) -> None:
        """Have the clocks restored that a job may have left locked on its node."""
        node = job.seen.node
        if self.address.device == "cpu" or not node:
            return
        options = [*self.address.options, *RESTORE_OPTIONS, f"--nodelist={node}"]
        command = shlex.join([*PROGRAM, "clocks", "reset"])
        try:
            number = slurm_commands.submit(options, command)
        except RunnerError as error:
            trouble = error.problems[0].message
            self.say(f"clocks on {node} may still be locked ({trouble}): `runner clocks reset` there restores them")
            return
        self.say(f"job {number} of Slurm restores the clocks on {node} if they are still locked")

    @override
    def uncollected(self, run: str) -> Iterable[bytes]:
        return slurm_leftovers.uncollected(self.reports, run, self.controller.cancel)

    @override
    def close(self) -> None:
        """See Executor. The output of failed jobs is kept, and so are blocks that nobody has used."""
        try:
            for job in self.jobs.values():
                slurm_commands.cancel(job.name)
                if not slurm_leftovers.has_block(job.path):
                    slurm_leftovers.remove(job.path)
        except RunnerError as error:
            self.say(f"jobs of Slurm still wait or run ({error.problems[0].message}): resuming the run cancels them")
        self.jobs.clear()
        slurm_leftovers.remove_lock(self.folder)
        self.lock.close()
        slurm_leftovers.remove_folder(self.folder)
