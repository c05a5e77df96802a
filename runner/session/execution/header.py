"""Write the header of a new run, read it back, and check that a run that continues still finds what it depends on."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runner.backends import harness_archive
from runner.core import machine
from runner.core.errors import OutageError, Problem, ProvisionError, RecordError, UsageError
from runner.core.files import write_whole
from runner.core.model import Gpu, Plan, Provisioned, device_id
from runner.core.version import __version__
from runner.plan.document import fingerprint, plan_document
from runner.releases.existing import portable
from runner.session.existing import word_of
from runner.session.preparation import RunOrigin, RunSettings
from runner.store.header import RunHeader, header_of
from runner.store.run import Run
from runner.store.started import note_started

LOCKS = "locks"
"""The folder of what each environment of a run was installed from: ``locks/<environment>.txt``."""
START_NEW = "start a new run: the records of both would not be comparable"


def read_header(run: Run) -> RunHeader:
    """Return the header of a run, with the digests of the environments that were built since.

    Raises:
        RecordError: the journal has no header, or one that lacks a field.
    """
    try:
        return header_of(run.journal().header)
    except ValueError as error:
        hint = "an older program wrote it: `runner run` starts a new run"
        raise RecordError(Problem(f"the header of run {run.id} is incomplete: {error}", hint=hint)) from error


def start_run(
    plan: Plan, settings: RunSettings, origin: RunOrigin, gpus: Sequence[Gpu], ready: Mapping[str, Provisioned]
) -> Run:
    """Create the folder of a new run, with its header.

    Args:
        plan: the plan.
        settings: paths and clocks.
        origin: who asked for it.
        gpus: the devices; none is the CPU.
        ready: the environments that were built.

    Raises:
        UsageError: the folder cannot be made.
    """
    only = next(iter(settings.as_is.values()), None) if plan.backend == "host" else None
    document, cases = plan_document(plan), {block.case_id: block.spec for block in plan.blocks}
    header = RunHeader(
        at=now(),
        plan=fingerprint(document, cases),
        measurement=plan.measurement,
        backend=plan.backend,
        **device_fields(gpus),
        matrix=str(settings.file.absolute()),
        python=only.python if only else None,
        framework=only.framework if only else None,
        clocks=settings.clocks,
        pin=settings.pin,
        harness=harness_archive.version(),
        digests=digests(ready),
        command=tuple(map(portable, origin.command)),
        program=__version__,
        profile=settings.profile,
        locks={name: str(path.absolute()) for name, path in settings.locks.items()},
        as_is={} if only else {name: word_of(each) for name, each in settings.as_is.items()},
        executor=origin.executor,
        metrics=settings.metrics,
    )
    name = origin.night or datetime.now(UTC)
    return Run.create(
        settings.reports,
        document,
        cases,
        machine.describe(gpus),
        header.event(),
        name,
        plan.models.values(),
        complete=lambda run, path: note_started(run, path=path),  # before anybody can resume it
    )


def stored_lock(run: Path, environment: str) -> Path:
    """Return the path of the lock of an environment in a run folder."""
    return run / LOCKS / f"{environment}.txt"


def write_lock(run: Path, ready: Provisioned) -> None:
    """Write the lock of an environment into a run folder; one without a lock has none."""
    if ready.lock:
        path = stored_lock(run, ready.environment)
        path.parent.mkdir(exist_ok=True)
        write_whole(path, ready.lock)


def digests(ready: Mapping[str, Provisioned]) -> dict[str, str]:
    """Return environment -> the digest of its content."""
    return {name: environment.digest for name, environment in ready.items()}


def now() -> str:
    """Return the time in UTC as journals have it."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def check_program(run: Run, header: RunHeader) -> None:
    """Raise UsageError where a run's plan was changed, or its measuring code differs from this program's."""
    if fingerprint(run.plan(), run.cases()) != header.plan:
        raise UsageError(Problem(f"the plan of run {run.id} was changed since it started", hint="start a new run"))
    current = harness_archive.version()
    if current != header.harness:
        message = f"run {run.id} was started with measuring code {header.harness}, and this program has {current}"
        raise UsageError(Problem(message, hint=f"{START_NEW}; or resume it with the program that started it"))


def check_machine(run: Run, header: RunHeader, gpus: Sequence[Gpu]) -> None:
    """Raise UsageError where the device or its driver has changed."""
    for name, current in device_fields(gpus).items():
        before = getattr(header, name)
        if current != before:
            message = f"the {name.replace('_', ' ')} of run {run.id} was {before}, and is {current} now"
            raise UsageError(Problem(message, hint=START_NEW))


def check_environments(
    known: Mapping[str, str], ready: Mapping[str, Provisioned], failed: Mapping[str, ProvisionError]
) -> None:
    """Raise UsageError where an environment has changed since the run started, or cannot be built any more.

    Raises OutageError where one is not available now, so that nothing is measured without it.

    Args:
        known: environment -> its digest when the run started; without those that could not be built then.
        ready: the environments that were built now.
        failed: why the others could not be built.
    """
    outages = {name: error.problems[0].message for name, error in failed.items() if error.passing}
    if outages:
        hint = "give the same command again when that has passed; the run is as it was"
        raise OutageError(*(Problem(f"{name} cannot be built now: {why}", hint=hint) for name, why in outages.items()))
    problems = [f"{name} cannot be built again: {failed[name].problems[0].message}" for name in known if name in failed]
    problems += [
        f"{name} has changed since the run started ({known[name]} -> {digest})"
        for name, digest in digests(ready).items()
        if known.get(name, digest) != digest
    ]
    if problems:
        raise UsageError(*(Problem(problem, hint=f"restore it, or {START_NEW}") for problem in problems))


def device_fields(gpus: Sequence[Gpu]) -> dict[str, Any]:
    """Return what a header says of the devices: ``device``, ``device_name`` and ``driver``."""
    count = f"{len(gpus)} x " if len(gpus) > 1 else ""
    return {
        "device": device_id(*gpus),
        "device_name": f"{count}{gpus[0].name}" if gpus else machine.cpu_name(),
        "driver": gpus[0].driver if gpus else None,
    }
