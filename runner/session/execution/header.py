"""The header of a run: what it depends on, and what it takes to resume it. It is the first event of the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runner.backends import harness_archive
from runner.core import machine
from runner.core.errors import Problem, ProvisionError, RecordError, UsageError
from runner.core.model import Gpu, Plan, Provisioned, device_id
from runner.core.model.cells import is_twin
from runner.core.paths import shortened
from runner.core.version import __version__
from runner.plan.document import fingerprint, plan_document
from runner.session.options import Options
from runner.session.preparation import RunSettings
from runner.store.run import Run

START_NEW = "start a new run: the records of both would not be comparable"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """What a run depends on, as its journal's ``begun`` event has it.

    Attributes:
        at: when it started, in UTC.
        plan: hash of the plan and of its cases.
        measurement: the fields of ``Measurement``.
        backend: ``docker``, ``venv`` or ``host``.
        device: ``cpu``, or the UUIDs of the GPUs with commas between them.
        device_name: the processor or the GPU; ``2 x H200`` for two.
        driver: the GPU's driver; None for a CPU.
        matrix: path of the matrix file.
        python: the interpreter that the host backend measures; ``framework`` is which one of its frameworks.
        clocks: the clock policy; None in runs of older programs.
        pin: whether steps on the CPU keep to cores of their own.
        harness: version of the measuring code.
        digests: environment -> digest of its content when it was first ready.
        command: the arguments of ``runner run``, with ``~`` for the home folder, for reports show them; empty in runs
            of older programs, as is the next.
        program: the version of the runner.
        profile: whether it keeps profiles.
        locks: environment -> the lock that a night used instead of the matrix's.
        executor: the address of the scheduler whose hosts measure; empty where this host alone does.
        host_options: the options that these hosts are sent.
    """

    at: str
    plan: str
    measurement: Mapping[str, Any]
    backend: str
    device: str
    device_name: str
    driver: str | None
    matrix: str
    python: str | None
    clocks: Mapping[str, Any] | None = None
    pin: bool = False
    harness: str
    digests: Mapping[str, str]
    command: Sequence[str] = ()
    program: str = ""
    framework: str | None = None
    profile: bool = False
    locks: Mapping[str, str] = field(default_factory=dict)
    executor: str = ""
    host_options: Mapping[str, Any] = field(default_factory=dict)

    def event(self) -> dict[str, Any]:
        """Return the fields of the ``begun`` event."""
        return asdict(self)

    def options(self, options: Options, environments: Sequence[str]) -> Options:
        """Return the options that select the same backend, device and environments again.

        Args:
            options: what the user typed to resume; its matrix file, reports folder and ``--busy-ok`` are
                kept.
            environments: those of the plan.
        """
        names = [name for name in environments if not is_twin(name)]
        host = self.backend == "host"
        return Options(
            selectors=None if host else names,
            matrix=options.matrix if options.matrix != Options().matrix else Path(self.matrix),
            reports=options.reports,
            device=self.device,
            backend=self.backend,
            python=self.python,
            framework=self.framework,
            name=names[0] if host else Options().name,
            busy_ok=options.busy_ok,
        )


def read_header(run: Run) -> RunHeader:
    """Return the header of a run, with the digests of the environments that were built since.

    Raises:
        RecordError: the journal has no header, or one that lacks a field.
    """
    event = run.journal().header
    known = {name: event[name] for name in RunHeader.__slots__ if name in event}
    try:
        return RunHeader(**known)
    except TypeError as error:
        hint = "an older program wrote it: `runner run` starts a new run"
        raise RecordError(Problem(f"the header of run {run.id} is incomplete: {error}", hint=hint)) from error


def start_run(plan: Plan, settings: RunSettings, gpus: Sequence[Gpu], ready: Mapping[str, Provisioned]) -> Run:
    """Create the folder of a new run, with its header.

    Args:
        plan: the plan.
        settings: paths and clocks.
        gpus: the devices; none is the CPU.
        ready: the environments that were built.

    Raises:
        UsageError: the folder cannot be made.
    """
    document, cases = plan_document(plan), {block.case_id: block.spec for block in plan.blocks}
    header = RunHeader(
        at=now(),
        plan=fingerprint(document, cases),
        measurement=asdict(plan.measurement),
        backend=plan.backend,
        **device_fields(gpus),
        matrix=str(settings.file.absolute()),
        python=settings.python,
        framework=settings.framework,
        clocks=settings.clocks.json(),
        pin=settings.pin,
        harness=harness_archive.version(),
        digests=digests(ready),
        command=tuple(map(shortened, settings.command)),
        program=__version__,
        profile=settings.profile,
        locks={name: str(path.absolute()) for name, path in settings.locks.items()},
        executor=settings.executor,
        host_options=settings.host_options,
    )
    name = settings.run or datetime.now(UTC)
    return Run.create(
        settings.reports, document, cases, machine.describe(gpus), header.event(), name, plan.models.values()
    )


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

    Args:
        known: environment -> its digest when the run started; without those that could not be built then.
        ready: the environments that were built now.
        failed: why the others could not be built.
    """
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
