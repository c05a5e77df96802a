"""`runner clean`: find what this program left on this machine and nothing needs any more, and remove it.

Runs are never touched. Containers, images and volumes are found by their labels on the engine, venvs, compiler caches
and references in the cache folder, and the folders of servers that died in the temporary folder.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from runner.backends import interpreters
from runner.backends.uses import UNKNOWN, Checkout, Need, noted_uses
from runner.backends.venv import READY, VenvBackend
from runner.core.errors import EngineError
from runner.core.locks import try_exclusive
from runner.core.model import Leftover, Spec
from runner.core.model.variant_ids import without_variant
from runner.core.units import disk_size
from runner.core.variables import content_digest
from runner.machine.dead_folders import entries, leftover_at, temporary, unfinished
from runner.matrix import load
from runner.measure.references import code_hash
from runner.nights.anchors_file import Anchor, anchor_digests
from runner.plan.specs import all_specs
from runner.releases.followed import current_specs
from runner.session.context import IN_USE

IN_USE_NOTE = "another runner is using this cache: what it may need is kept; try again when it has ended"
SHOWN_CHECKOUTS = 3  # of others, in a sentence
NO_ENGINE = "no container engine answers: images, volumes and containers were not examined"

_VENV_NAME = re.compile(r".+-[0-9a-f]{12}")  # as VenvBackend.home names a folder


@dataclass(frozen=True, slots=True)
class CleanupSurvey:
    """What can be removed, and what the user should know about the search."""

    leftovers: tuple[Leftover, ...]
    notes: tuple[str, ...]

    @property
    def of_this_checkout(self) -> tuple[Leftover, ...]:
        """What no other checkout needs."""
        return tuple(leftover for leftover in self.leftovers if not leftover.others)

    @property
    def of_others(self) -> tuple[Leftover, ...]:
        """What other checkouts need, or what names none; unless everything may go, only the latter is here."""
        return tuple(leftover for leftover in self.leftovers if leftover.others)


@contextmanager
def leftovers(matrix: Path, cache: Path, reports: Path, *, everything: bool) -> Iterator[CleanupSurvey]:
    """Find what can be removed; no other runner that uses this cache starts before the block ends.

    Args:
        matrix: the matrix file, which says what is needed.
        cache: the folder that ``core.paths.cache_folder`` returns.
        reports: the folder of the runs; the environments of its nights' anchors stay, and those of the releases that
            its nights follow.
        everything: include what the matrix needs, which can be built again, the environments of anchors, what was
            used today, and what other checkouts need.
    """
    loaded = load(matrix, networks=False)
    anchors = frozenset() if everything else anchor_digests(reports)
    needed = [*all_specs(loaded, matrix.parent), *current_specs(loaded, matrix.parent, reports)]
    with try_exclusive(cache / IN_USE) as alone:
        removable: list[Leftover] = []
        notes = [] if alone else [IN_USE_NOTE]
        checkout = Checkout(matrix.parent)
        try:
            removable += _on_engine(loaded.registry, needed, anchors, checkout, alone=alone, everything=everything)
        except EngineError:
            notes.append(NO_ENGINE)
        if alone:
            removable += [*_in_cache(cache, checkout, needed, anchors, everything=everything), *temporary()]
            removable += unfinished(reports)
        yield CleanupSurvey(tuple(removable), tuple(notes))


def listing(leftovers: Sequence[Leftover]) -> str:
    """Return what can be removed as text: size, kind, name, reason, and which other checkouts need it."""
    if not leftovers:
        return "nothing to remove"
    rows = [(disk_size(left.size), left.kind, left.name, _with_others(left)) for left in leftovers]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(f"{row[0]:>{widths[0]}}  {row[1]:{widths[1]}}  {row[2]:{widths[2]}}  {row[3]}" for row in rows)


def _with_others(leftover: Leftover) -> str:
    if leftover.others == (UNKNOWN,):
        return f"{leftover.reason}; it names no checkout"
    return f"{leftover.reason}; {', '.join(leftover.others)} needs it, too" if leftover.others else leftover.reason


def summary(leftovers: Sequence[Leftover], kept: Sequence[tuple[Leftover, str]], *, dry: bool) -> str:
    """Return how many leftovers were removed, and their size, in a sentence."""
    not_removed = {leftover for leftover, _ in kept}
    removed = [leftover for leftover in leftovers if leftover not in not_removed]
    return f"{_amount(removed)} {'would be removed' if dry else 'removed'}, {_sizes(removed)}"


def of_others(leftovers: Sequence[Leftover]) -> str:
    """Return how much other checkouts need of what could be removed, and which these are."""
    checkouts = sorted({name for leftover in leftovers for name in leftover.others})
    more = f" and {len(checkouts) - SHOWN_CHECKOUTS} more" if len(checkouts) > SHOWN_CHECKOUTS else ""
    return f"{_amount(leftovers)}, {_sizes(leftovers)}, of {', '.join(checkouts[:SHOWN_CHECKOUTS])}{more}"


def _amount(leftovers: Sequence[Leftover]) -> str:
    return "1 item" if len(leftovers) == 1 else f"{len(leftovers)} items"


def _sizes(leftovers: Sequence[Leftover]) -> str:
    return disk_size(sum(leftover.size for leftover in leftovers))


def _on_engine(
    registry: str | None,
    needed: Sequence[Spec],
    anchors: Collection[Anchor],
    checkout: Checkout,
    *,
    alone: bool,
    everything: bool,
) -> list[Leftover]:
    from runner.backends.docker.backend import DockerBackend
    from runner.backends.docker.cleanup import abandoned_containers, unneeded_images_and_volumes
    from runner.backends.docker.client import connect, talking

    backend = DockerBackend(checkout.folder / "docker", registry=registry)
    kept = {content_digest(anchor.digest) for anchor in anchors}
    with closing(connect()) as client, talking("the container engine stopped answering"):
        leftovers = [*abandoned_containers(client)]
        if alone:
            leftovers += unneeded_images_and_volumes(
                client,
                backend.tags(needed),
                kept,
                everything=everything,
                need=checkout.need,
            )
        return leftovers


def _in_cache(
    cache: Path, checkout: Checkout, needed: Sequence[Spec], anchors: Collection[Anchor], *, everything: bool
) -> Iterator[Leftover]:
    venvs = VenvBackend(cache)
    needed_names = {venvs.home(spec).name for spec in needed if spec.lock and spec.python}
    needed_names |= {venvs.home_of(without_variant(anchor.environment), anchor.digest).name for anchor in anchors}
    needs = {home.name: _need(home, cache, checkout) for home in entries(venvs.folder)}
    removable: dict[str, Leftover] = {}
    for leftover in _venvs(venvs.folder, needed_names, needed, everything=everything):
        need = needs[Path(leftover.name).name]
        if everything or not need.keeps:
            removable[leftover.name] = replace(leftover, others=need.others)
    yield from removable.values()
    kept = {name for name in needs if str(venvs.folder / name) not in removable}
    for path in entries(venvs.caches):
        others = needs.get(path.name, Need()).others
        if everything:
            yield replace(leftover_at("cache", path, "--all; compilers fill it again"), others=others)
        elif _VENV_NAME.fullmatch(path.name) and path.name not in kept:
            yield replace(leftover_at("cache", path, "its environment no longer exists"), others=others)
    yield from _references(cache, everything=everything)


def _need(home: Path, cache: Path, checkout: Checkout) -> Need:
    """Return who needs a venv; nobody needs an incomplete one."""
    return checkout.need(noted_uses(cache, home.name)) if (home / READY).exists() else Need()


def _references(cache: Path, *, everything: bool) -> Iterator[Leftover]:
    for path in entries(cache / "references"):
        if path.name.startswith("."):
            yield leftover_at("reference", path, "incomplete")
        elif everything:
            yield leftover_at("reference", path, "--all; it can be computed again")
        elif not path.name.endswith(f"-{code_hash()}.json"):
            yield leftover_at("reference", path, "computed by older code")


def _venvs(folder: Path, names: set[str], needed: Sequence[Spec], *, everything: bool) -> Iterator[Leftover]:
    known = {spec.environment for spec in needed}
    # The name of a venv depends on its interpreter: without it, nothing can be said about the venv.
    unknown = {spec.environment for spec in needed if spec.python and interpreters.find(spec.python) is None}
    for path in entries(folder):
        if not path.is_dir() or not _idle(path):
            continue
        environment = path.name.rpartition("-")[0]
        if not (path / READY).exists():
            yield leftover_at("venv", path, "incomplete")
        elif environment in unknown and not everything:
            continue
        elif path.name not in names:
            changed = f"the lock or the interpreter of {environment} has changed"
            unknown_name = f"the matrix has no environment {environment}"
            yield leftover_at("venv", path, changed if environment in known else unknown_name)
        elif everything:
            yield leftover_at("venv", path, f"--all; {environment} can be built again")


def _idle(home: Path) -> bool:
    """Return True unless another process is building this venv."""
    lock = home.with_name(f"{home.name}.lock")
    if not lock.exists():
        return True
    with try_exclusive(lock) as alone:
        return alone
