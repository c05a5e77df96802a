"""What a worker does with a task: plan for its device, or measure one block as a run of its own."""

import io
import os
import socket
import tarfile
import traceback
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from runner.core.errors import Problem, RunnerError
from runner.core.files import read_bounded, write_whole
from runner.core.model import Measurement, Past, device_id
from runner.core.progress import Progress
from runner.core.unfinished import temporary_folder
from runner.hosts import project
from runner.hosts.project import models
from runner.hosts.tasks import BlockTask, Inquiry, Offer, decode, encode, received_options, refusal, reply, token_of
from runner.machine.clocks import announcements
from runner.plan.document import plan_document, read_plan
from runner.session.context import Context, PlannedRun, cache_in_use, setup
from runner.session.execution import header
from runner.session.execution.resume import remaining_work
from runner.session.flow import execute
from runner.session.preparation import prepare
from runner.store.run import Run

MAX_TASK_BYTES = 512 << 20


def perform_guarded(task: bytes, device: str) -> bytes:
    """Carry out a task as ``perform`` does, and return a reply, also where it cannot be carried out."""
    token = token_of(task)
    try:
        return reply(perform(task, device), token)
    except RunnerError as error:
        return refusal("; ".join(problem.message for problem in error.problems), token)
    except Exception as error:  # noqa: BLE001  whatever a task raises ends this task only
        traceback.print_exc()
        return refusal(f"the worker failed: {type(error).__name__}: {error}", token)


def perform_file(task: Path, reply_file: Path, device: str) -> None:
    """Carry out the task in a file, and write the reply to another; raises OSError where that fails."""
    write_whole(reply_file, perform_guarded(read_bounded(task, MAX_TASK_BYTES), device))


def perform(task: bytes, device: str, say: Callable[[str], None] = print) -> bytes:
    """Carry out a task on a device; return an offer, or the run folder of a block as a ``.tar.gz``.

    Args:
        task: an encoded ``Inquiry`` or ``BlockTask``.
        device: what this worker measures on: ``cpu``, or the UUID of a GPU.
        say: takes lines for the log of the worker.

    Raises:
        RunnerError: it cannot be carried out here; the message says why.
    """
    content = decode(task)
    with temporary_folder() as folder, cache_in_use(say):
        match content:
            case Inquiry():
                return encode(_offer(content, device, folder))
            case BlockTask():
                return _measured(content, device, folder, Progress(say))
            case Offer():
                raise RunnerError(Problem("a worker takes inquiries and jobs, and no offers"))


def _offer(inquiry: Inquiry, device: str, folder: Path) -> Offer:
    context = context_of(inquiry, device, folder / "project", folder / "reports")
    prepared = prepare(context.matrix, context.request, context.backend, context.settings, context.gpu)
    plan, fields = prepared.plan, header.device_fields(context.gpus)
    announced = announcements(context.gpus, context.settings.clocks)
    clocks = ("; ".join(filter(None, [each.text, each.fix])) for each in announced)
    return Offer(
        host=socket.gethostname(),
        device=device_id(*context.gpus),
        device_name=fields["device_name"],
        driver=fields["driver"],
        plan=plan_document(plan),
        cases={block.case_id: block.spec for block in plan.blocks},
        measurement=asdict(plan.measurement),
        made=tuple(sorted(prepared.survey.cached)),
        notes=(*context.notes, *prepared.notes, *clocks),
    )


def context_of(task: Inquiry | BlockTask, device: str, folder: Path, reports: Path) -> Context:
    """Return the context of a task, with the matrix and the locks that came with it, which are written to a folder."""
    options = received_options(task.options, project.unpack(task.project, folder), reports, device)
    return setup(options, received=folder / project.RELEASES)


def _measured(job: BlockTask, device: str, folder: Path, progress: Progress) -> bytes:
    """Measure a block as a run below ``folder``, and return that run's folder; its lock is held meanwhile."""
    context = context_of(job, device, folder / "project", folder / "reports")
    plan = read_plan(job.plan, job.cases, Measurement(**job.measurement), Past(), models(context.matrix))
    context = context.step_of(f"the driver of run {job.run}", context.settings.reports)
    stored = header.start_run(plan, context.settings, context.origin, context.gpus, {})
    prepared = remaining_work(plan, context, context.settings.locks)
    with stored.hold():
        execute(PlannedRun(context, prepared, stored), progress)
    return archive(stored)


def archive(run: Run) -> bytes:
    """Return the files of a run folder as a ``.tar.gz``, below ``runs/RUN``."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1, format=tarfile.GNU_FORMAT) as members:
        for folder, names, files in os.walk(run.path):
            names.sort()
            for name in sorted(files):
                path = Path(folder, name)
                members.add(path, f"runs/{run.id}/{path.relative_to(run.path).as_posix()}", recursive=False)
    return out.getvalue()
