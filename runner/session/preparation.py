"""What is known before anything is built: the settings of a run, its plan, and the environments that the plan needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runner.backends import Backend, Installed
from runner.backends.lock_file import locked_packages
from runner.core.metrics import TIME
from runner.core.model import Gpu, Plan, Provisioned, Request, Skip, Spec, Survey
from runner.core.model.devices import LEAVE, ClockPolicy
from runner.matrix import Matrix
from runner.plan.missing_modules import missing_modules
from runner.plan.planner import plan
from runner.plan.specs import of_all, specs, with_interpreters, with_locks
from runner.releases.lock_check import refuse_old_locks

QUIET_SECONDS = 60.0
"""How long a run waits for a quiet machine, unless ``--busy-ok`` starts it at once."""
NIGHT_QUIET_SECONDS = 600.0
"""How long the first run of a night waits: nobody is watching, and it has hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrigin:
    """Who asked for a run; it says so in its header, and where it is interrupted.

    Attributes:
        command: the arguments of ``runner run`` that were typed, or that ask for the same.
        part_of: the command that the run is a step of, and that measures it again; empty for one of its own.
        night: the night whose first run it is, and whose id it has; empty for other runs.
        executor: the address of the scheduler whose hosts measure; empty where this host alone does.
    """

    command: tuple[str, ...] = ()
    part_of: str = ""
    night: str = ""
    executor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How and where a run is measured, beyond its plan.

    Attributes:
        file: the matrix file.
        reports: the folder that holds the runs.
        cache: the folder of what can be rebuilt: environments, references, locks.
        margin: the change that counts as none, as a share.
        controls: measure A/A pairs and a canary.
        clocks: the clocks that GPUs are locked to.
        pin: keep steps on the CPU to cores of their own.
        telemetry: readings of a GPU per second.
        quiet_seconds: how long to wait for a quiet machine before measuring; 0 does not look.
        locks: environment -> the lock that is used instead of the matrix's.
        unresolved: environment -> why it has no lock on this architecture.
        as_is: environment -> what it holds, for interpreters and images that are measured as they are.
        metrics: the names of the metrics whose open verdicts get further rounds.
        profile: keep a profile of a step of each cell, taken after the rounds.
    """

    file: Path
    reports: Path
    cache: Path
    margin: float = 0.02
    controls: bool = False
    clocks: ClockPolicy = LEAVE
    pin: bool = False
    telemetry: float = 0.0
    quiet_seconds: float = 0.0
    locks: Mapping[str, Path] = field(default_factory=dict)
    unresolved: Mapping[str, Skip] = field(default_factory=dict)
    as_is: Mapping[str, Installed] = field(default_factory=dict)
    metrics: tuple[str, ...] = (TIME,)
    profile: bool = False

    @property
    def matrix(self) -> Path:
        """The folder that locks and Dockerfiles are relative to."""
        return self.file.parent

    def completed(self, specs: Sequence[Spec]) -> tuple[Spec, ...]:
        """Return what to build with what the matrix file does not say: other locks, and interpreters as they are."""
        interpreters = {name: each.python for name, each in self.as_is.items()}
        return with_interpreters(with_locks(specs, self.locks), interpreters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A plan, and the environments that have to be built for it.

    Attributes:
        plan: every selected cell with its verdict.
        specs: what to build.
        survey: what is here already, and what is not available.
        named: environments that the user named by their ids.
        also: environments of the plan that exist already, by id.
        notes: sentences that the user should read before anything is built.
    """

    plan: Plan
    specs: tuple[Spec, ...]
    survey: Survey
    named: frozenset[str] = frozenset()
    also: Mapping[str, Provisioned] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def prepare(
    matrix: Matrix,
    request: Request,
    backend: Backend,
    settings: RunSettings,
    gpu: Gpu | None,
    survey: Survey | None = None,
) -> Prepared:
    """Survey this machine and plan by it; nothing is downloaded or built.

    Args:
        matrix: the checked matrix.
        request: what was asked for.
        backend: builds environments.
        settings: the folder of the matrix and the locks count.
        gpu: stands for all GPUs; None on a CPU.
        survey: an earlier one of the same environments; None makes one.

    Raises:
        MatrixError: a lock of the matrix was made from other requirements than it has now.
    """
    of_file = [name for name in request.environments if matrix.image_of(name) not in settings.locks]
    refuse_old_locks(settings.file, matrix, of_file, request.device)
    complete, incomplete = specs(matrix, request.environments, request.device, settings.matrix)
    complete = settings.completed(complete)
    survey = survey or backend.survey(complete)
    skips = {**survey.skips, **settings.unresolved}
    unavailable = {**of_all(matrix, request.environments, skips), **incomplete}
    locked = locked_packages(complete)
    planned = plan(matrix, request, unavailable, gpu, locked=locked)
    needed = {matrix.image_of(cell.environment) for block in planned.blocks for cell in block.cells}
    return Prepared(
        plan=planned,
        specs=tuple(spec for spec in complete if spec.environment in needed),
        survey=survey,
        named=request.named,
        notes=missing_modules(matrix, planned, locked),
    )
