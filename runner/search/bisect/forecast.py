"""What a bisect would take: its candidates, the number of steps and builds, and the minutes of measuring."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.utils import canonicalize_name

from runner.core.model import Device
from runner.core.units import disk_size, duration
from runner.matrix import Matrix, Variant
from runner.matrix.select import release_key
from runner.releases.candidates import ReleaseCandidate, package_of
from runner.report import formatting, rich_text
from runner.search.bisect.measuring import Measuring
from runner.search.bisect.result import entry
from runner.stats.bisection import comparison_limit, expected_comparisons

MORE_BY_NOISE: Mapping[float, int] = {0.02: 1, 0.04: 3}
"""Standard deviation between rounds -> comparisons more than ``expected_comparisons`` that a single change of 5 % takes
on average, for open verdicts and releases around it (``python -m benchmarks.bisects``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparisons:
    """How many comparisons a search takes.

    Attributes:
        by_noise: standard deviation between rounds -> comparisons for a single change of 5 %.
        limit: after which it stops, or all of them.
        every: all neighbours are compared.
        rebuilds: comparisons of an end with a second build of it, which ``by_noise`` and ``limit`` do not count.
    """

    by_noise: Mapping[float, int]
    limit: int
    every: bool
    rebuilds: int = 0

    @property
    def fewest(self) -> int:
        """Of a single change on a quiet machine."""
        return min(self.by_noise.values()) + self.rebuilds

    @property
    def sentence(self) -> str:
        """What to expect."""
        more = f"; second builds of the ends take {self.rebuilds} more" if self.rebuilds else ""
        if self.every:
            return f"about {formatting.counted(self.fewest, 'comparison')}, and one more for each further change"
        of_noise = [f"{steps} where rounds scatter by {100 * noise:g} %" for noise, steps in self.by_noise.items()]
        few = f"comparisons for a single change of 5 %: about {', '.join(of_noise)}"
        return f"{few}; gradual changes take more, and the search stops after {self.limit}{more}"


def comparisons(size: int, *, every: bool, limit: int | None, rebuild: bool = False) -> Comparisons:
    """Return how many comparisons a search takes.

    Args:
        size: the number of candidates.
        every: compare all neighbours.
        limit: comparisons at most; None for the default.
        rebuild: both ends are built and measured a second time.
    """
    single = expected_comparisons(size, every=every)
    last = limit or (single if every else comparison_limit(size))
    more = dict.fromkeys(MORE_BY_NOISE, 0) if every else MORE_BY_NOISE
    by_noise = {noise: min(single + steps, last) for noise, steps in more.items()}
    return Comparisons(by_noise=by_noise, limit=last, every=every, rebuilds=2 if rebuild else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a search takes.

    Attributes:
        candidates: from the good end to the bad one.
        ready: names of those that are built.
        comparisons: how many there are; the next three are of the fewest.
        builds: how many environments are built, at most.
        seconds: of measuring: the planned rounds of each step; further ones come while a verdict is open.
        download: bytes, by the sizes that the matrix gives for the nearest releases; 0 where they are unknown.
        notes: what is not available, as sentences.
    """

    candidates: tuple[ReleaseCandidate, ...]
    ready: frozenset[str]
    comparisons: Comparisons
    builds: int
    seconds: float
    download: int
    notes: tuple[str, ...] = ()

    def json(self) -> Mapping[str, Any]:
        """Return it as JSON has it."""
        return {
            "candidates": [{**entry(each), "ready": each.name in self.ready} for each in self.candidates],
            "steps": self.comparisons.fewest,
            "steps_by_noise": {str(noise): steps for noise, steps in self.comparisons.by_noise.items()},
            "most_steps": self.comparisons.limit,
            **{name: getattr(self, name) for name in ("builds", "seconds", "download")},
            "notes": list(self.notes),
        }

    def text(self, width: int = 100, *, colour: bool = False) -> str:  # noqa: ARG002  a plain table
        """Return the candidates as a table, then what the search takes."""
        rows = [("environment", "release", "made from", "")]
        rows += [
            (each.name, each.release, each.template or "the matrix", "ready" if each.name in self.ready else "to build")
            for each in self.candidates
        ]
        download = f", about {disk_size(self.download)} to download" if self.download else ""
        builds = formatting.counted(self.builds, "build")
        measuring = f"at least {duration(self.seconds)} of measuring"
        fewest = formatting.counted(self.comparisons.fewest, "comparison")
        summary = f"{fewest} take at most {builds}{download}, and {measuring}"
        notes = [f"note: {note}" for note in self.notes]
        return "\n".join([rich_text.columns(rows, width).rstrip(), *notes, self.comparisons.sentence, summary])


def forecast(
    candidates: Sequence[ReleaseCandidate],
    measuring: Measuring,
    notes: Sequence[str],
    *,
    every: bool = False,
    limit: int | None = None,
    rebuild: bool = False,
) -> Forecast:
    """Return what a search among some candidates takes; nothing is locked, built or measured."""
    of_matrix = [candidate for candidate in candidates if candidate.source == "matrix"]
    ready = measuring.prepared(*of_matrix).survey.cached if of_matrix else frozenset()
    of_search = comparisons(len(candidates), every=every, limit=limit, rebuild=rebuild)
    steps = of_search.fewest
    builds = min(len(candidates) - len(ready), steps - of_search.rebuilds + 1)
    matrix, device = measuring.context.matrix, measuring.context.request.device
    download = sorted(
        (download_of(each, matrix, device) for each in candidates if each.name not in ready), reverse=True
    )
    cells = measuring.prepared(candidates[0]).plan.cells
    return Forecast(
        candidates=tuple(candidates),
        ready=ready,
        comparisons=of_search,
        builds=builds + of_search.rebuilds,
        seconds=2 * steps * max(cell.seconds for cell in cells),
        download=sum(download[:builds]),
        notes=tuple(notes),
    )


def download_of(candidate: ReleaseCandidate, matrix: Matrix, device: Device) -> int:
    """Return the bytes to fetch for a candidate, 0 where nothing is known.

    Those of a release of the index are what the matrix gives for the nearest release of the same package, from the same
    index: wheels for GPUs are what a plain ``torch==2.4.1`` fetches, also on a machine without one.
    """
    variant = candidate.environment.variant(device)
    if variant is None or candidate.source == "matrix":
        return (variant.download_bytes or 0) if variant else 0
    framework = candidate.environment.framework
    order = release_key(candidate.environment.release)
    if order is None:
        return 0
    sizes = {
        key: each.download_bytes
        for environment in matrix.environments.values()
        if environment.framework == framework and (key := release_key(environment.release)) is not None
        for each in environment.all_variants().values()
        if each.download_bytes and not each.image and _source(each, framework) == _source(variant, framework)
    }
    keys = sorted({*sizes, order})
    at = keys.index(order)
    return max(((-abs(keys.index(key) - at), size) for key, size in sizes.items()), default=(0, 0))[1]


def _source(variant: Variant, framework: str) -> tuple[object, ...]:
    package = package_of(variant, framework)
    return canonicalize_name(package.name), frozenset(package.extras), variant.index, variant.find_links
