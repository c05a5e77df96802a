"""What a run began with: written down with its first line, and compared with what is here when it is resumed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runner.backends import harness_archive
from runner.core import machine
from runner.core.errors import Problem, ProvisionError, UsageError
from runner.core.model import Gpu, Plan, Provisioned, device_id
from runner.plan.document import fingerprint, plan_json
from runner.store.run import Run

HINT = "begin a new run: the records of both would not be comparable"


def begin(
    planned: Plan, reports: Path, origin: Mapping[str, Any], gpus: Sequence[Gpu], ready: Mapping[str, Provisioned]
) -> Run:
    """Make the folder of a new run, with all that it takes to resume it.

    Args:
        planned: the plan.
        reports: where runs are kept.
        origin: ``matrix``, the matrix file, ``python``, the interpreter of the host backend, and ``clocks``, the clocks
            that were asked for.
        gpus: the devices; none is the CPU.
        ready: the environments that could be made.
    """
    document, cases = plan_json(planned), {block.case_id: block.spec for block in planned.blocks}
    begun = {
        "at": now(),
        "plan": fingerprint(document, cases),
        "measurement": asdict(planned.measurement),
        "backend": planned.backend,
        **_machine(gpus),
        **origin,
        "harness": harness_archive.version(),
        "digests": digests(ready),
    }
    return Run.create(reports, document, cases, machine.describe(gpus), begun, datetime.now(UTC))


def digests(ready: Mapping[str, Provisioned]) -> dict[str, str]:
    """Return environment -> what pins its content."""
    return {name: found.digest for name, found in ready.items()}


def now() -> str:
    """Return the time in UTC as journals have it."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def same_program(run: Run, begun: Mapping[str, Any]) -> None:
    """Raise UsageError where a run's plan was changed, or was measured by other code than this program's."""
    if fingerprint(run.plan(), run.cases()) != begun["plan"]:
        raise UsageError(Problem(f"the plan of run {run.id} is not what it began with", hint="begin a new run"))
    current = harness_archive.version()
    if current != begun["harness"]:
        what = f"run {run.id} was begun with the measuring code {begun['harness']}, and this is {current}"
        raise UsageError(Problem(what, hint=f"{HINT}; or resume it with the program that began it"))


def same_machine(run: Run, begun: Mapping[str, Any], gpus: Sequence[Gpu]) -> None:
    """Raise UsageError where the device, or its driver, is another one."""
    for name, found in _machine(gpus).items():
        if found != begun[name]:
            what = f"the {name.replace('_', ' ')} of run {run.id} was {begun[name]}, and here it is {found}"
            raise UsageError(Problem(what, hint=HINT))


def same_environments(
    known: Mapping[str, str], ready: Mapping[str, Provisioned], failed: Mapping[str, ProvisionError]
) -> None:
    """Raise UsageError where an environment cannot be made again, or became another one.

    Args:
        known: environment -> its digest when the run began; those that could not be made then are not in it.
        ready: what could be made now.
        failed: what could not.
    """
    lost = [f"{name} cannot be made again: {failed[name].problems[0].message}" for name in known if name in failed]
    other = [
        f"{name} is not what it was: {known[name]} became {found}"
        for name, found in digests(ready).items()
        if known.get(name, found) != found
    ]
    if lost or other:
        raise UsageError(*(Problem(text, hint=f"put it back as it was, or {HINT}") for text in lost + other))


def _machine(gpus: Sequence[Gpu]) -> dict[str, str | None]:
    several = f"{len(gpus)} x " if len(gpus) > 1 else ""
    return {
        "device": device_id(*gpus),
        "device_name": f"{several}{gpus[0].name}" if gpus else machine.cpu_name(),
        "driver": gpus[0].driver if gpus else None,
    }
