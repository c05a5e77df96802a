"""Environments that follow a package: the night locks and builds its newest release, and measures that.

Neither the matrix nor its locks change: ``releases.kept`` has the locks of nights in the reports folder. Of the
packages of an environment only the followed one moves, and what it needs: the others keep their versions where these
fit. So what a night reports of a new release comes from the release.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.backends import Backend, provision
from runner.core.errors import ProvisionError, RecordError, RunnerError
from runner.core.model import Spec
from runner.core.progress import Progress
from runner.plan.specs import announce, specs, with_locks
from runner.releases import kept
from runner.releases.followed import Followed, current_locks, release_in
from runner.releases.lock import resolved
from runner.session.context import Context
from runner.store.documents import save

BEFORE = "the night measures {}, as before"
NOTHING = "it has no earlier release, so nothing of it is measured"


@dataclass(frozen=True, slots=True)
class NewRelease:
    """A release that is not the one in use: its version and its lock; ``new`` if the lock is of tonight."""

    followed: Followed
    version: str
    lock: Path
    new: bool


def update(context: Context, followed: Sequence[Followed], progress: Progress) -> tuple[dict[str, Path], list[str]]:
    """Lock and build the newest releases of the followed packages.

    Returns:
        environment -> the lock that the night uses instead of the matrix's; and a sentence for each new release, and
        for each that is not available.

    Raises:
        EngineError: the engine stopped answering.
    """
    reports, locks, notes = context.settings.reports, current_locks(followed), list[str]()
    candidates: list[NewRelease] = []
    for each in followed:
        progress.note(f"{each.environment}: looking for releases of {each.request.upgrade}")
        try:
            candidate = _newest(each, reports)
        except (ProvisionError, RecordError) as error:
            notes.append(_sentence(each, f"the newest release of {each.package} is not known", error))
            continue
        candidates += [candidate] if candidate else []
    failures = dict(_build(context, candidates, progress))
    for candidate in candidates:
        each, failure = candidate.followed, failures.get(candidate.followed.environment)
        if failure is not None:
            candidate.lock.unlink(missing_ok=True) if candidate.new else None
            notes.append(_sentence(each, f"{each.package} {candidate.version} cannot be built", failure))
            continue
        lock = _keep(candidate, reports)
        locks.pop(each.environment, None)
        locks |= {each.environment: lock} if lock != each.matrix_lock else {}
        was = f", was {each.release}" if each.release else ""
        notes.append(f"{each.environment}: {each.package} {candidate.version}{was}; its lock is {lock}")
    return locks, notes


def _newest(followed: Followed, reports: Path) -> NewRelease | None:
    """Return the newest release if it is not the one in use, with its lock; a release keeps the lock that it had.

    Raises:
        ProvisionError: the requirements cannot be resolved.
        RecordError: the lock cannot be written.
    """
    text = resolved(followed.request)
    written = kept.lock_of(reports, followed.folder, ".new")
    save(written, text)
    version = release_in(written, followed.package)
    if version == followed.release:
        written.unlink()
        return None
    earlier = kept.kept_locks(reports, followed.folder).get(version)
    if version == release_in(followed.matrix_lock, followed.package):
        earlier = followed.matrix_lock
    if earlier is not None:
        written.unlink()
    return NewRelease(followed, version, earlier or written, new=earlier is None)


def _build(
    context: Context, candidates: Sequence[NewRelease], progress: Progress
) -> Iterator[tuple[str, ProvisionError | RunnerError]]:
    """Build the environments of releases; yield (environment, error) for each that cannot be built."""
    locks = {candidate.followed.environment: candidate.lock for candidate in candidates}
    complete, _ = specs(context.matrix, list(locks), context.request.device, context.settings.matrix)
    requested = with_locks(complete, locks)
    if not requested:
        return
    survey = context.backend.survey(requested)
    for name, skip in survey.skips.items():
        yield name, RunnerError(skip.reason)
    buildable = tuple(spec for spec in requested if spec.environment not in survey.skips)
    try:
        cost = announce(buildable, survey)
    except RunnerError as error:  # the disk has too little room
        yield from ((spec.environment, error) for spec in buildable)
        return
    if cost:
        progress.note(cost)
    yield from _failures(buildable, context.backend, progress)


def _failures(
    buildable: Sequence[Spec], backend: Backend, progress: Progress
) -> Iterator[tuple[str, ProvisionError | RunnerError]]:
    _, failed = provision(buildable, backend, progress)
    for name, error in failed.items():
        progress.note(f"{name}: {error.code}: {error}\n{error.log}")
        yield name, error


def _keep(candidate: NewRelease, reports: Path) -> Path:
    """Keep the lock of a release that was built, and have the next nights use it; return its path."""
    followed, lock = candidate.followed, candidate.lock
    if candidate.new:
        lock = kept.lock_of(reports, followed.folder, candidate.version)
        candidate.lock.rename(lock)
    release = "" if lock == followed.matrix_lock else candidate.version
    kept.use(reports, followed.folder, release, followed.matrix_lock)
    return lock


def _sentence(followed: Followed, what: str, error: Exception) -> str:
    problem = error.problems[0].message if isinstance(error, RunnerError) else str(error)
    rest = BEFORE.format(f"{followed.package} {followed.release}") if followed.release else NOTHING
    return f"{followed.environment}: {what}: {' '.join(problem.split())}; {rest}"
