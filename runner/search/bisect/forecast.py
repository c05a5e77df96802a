"""What a bisect would take: its candidates, the number of steps and builds, and the minutes of measuring."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.utils import canonicalize_name

from runner.core.model import Device
from runner.core.units import disk_size, duration
from runner.matrix import Matrix, Variant
from runner.matrix.select import release_key
from runner.releases.candidates import ReleaseCandidate, package_of, version_key
from runner.report import formatting, rich_text
from runner.search.bisect.measuring import Measuring
from runner.search.bisect.result import entry
from runner.stats.bisection import expected_comparisons


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a search takes.

    Attributes:
        candidates: from the good end to the bad one.
        ready: names of those that are built.
        steps: how many comparisons name a single change.
        builds: how many environments are built for that, at most.
        seconds: of measuring: the planned rounds of each step; further ones come while a verdict is open.
        download: bytes, by the sizes that the matrix gives for the nearest releases; 0 where they are unknown.
        notes: what cannot be had, as sentences.
    """

    candidates: tuple[ReleaseCandidate, ...]
    ready: frozenset[str]
    steps: int
    builds: int
    seconds: float
    download: int
    notes: tuple[str, ...] = ()

    def json(self) -> Mapping[str, Any]:
        """Return it as JSON has it."""
        return {
            "candidates": [{**entry(each), "ready": each.name in self.ready} for each in self.candidates],
            **{name: getattr(self, name) for name in ("steps", "builds", "seconds", "download")},
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
        steps, builds = formatting.counted(self.steps, "step"), formatting.counted(self.builds, "build")
        measuring = f"at least {duration(self.seconds)} of measuring"
        summary = f"about {steps}, at most {builds}{download}, and {measuring}"
        notes = [f"note: {note}" for note in self.notes]
        return "\n".join([rich_text.columns(rows, width).rstrip(), *notes, summary])


def forecast(
    candidates: Sequence[ReleaseCandidate], measuring: Measuring, notes: Sequence[str], *, every: bool = False
) -> Forecast:
    """Return what a search among some candidates takes; nothing is locked, built or measured."""
    of_matrix = [candidate for candidate in candidates if candidate.source == "matrix"]
    ready = measuring.prepared(*of_matrix).survey.cached if of_matrix else frozenset()
    steps = expected_comparisons(len(candidates), every=every)
    builds = min(len(candidates) - len(ready), steps + 1)
    matrix, device = measuring.context.matrix, measuring.context.request.device
    download = sorted(
        (download_of(each, matrix, device) for each in candidates if each.name not in ready), reverse=True
    )
    cells = measuring.prepared(candidates[0]).plan.cells
    return Forecast(
        candidates=tuple(candidates),
        ready=ready,
        steps=steps,
        builds=builds,
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
    order = version_key(candidate.release)
    sizes = {
        key: each.download_bytes
        for environment in matrix.environments.values()
        if environment.framework == framework and (key := release_key(environment.release)) is not None
        for each in environment.all_variants().values()
        if each.download_bytes and not each.image and _source(each, framework) == _source(variant, framework)
    }
    keys = sorted({*sizes, order})  # type: ignore[type-var]  # versions of PEP 440
    at = keys.index(order)
    return max(((-abs(keys.index(key) - at), size) for key, size in sizes.items()), default=(0, 0))[1]


def _source(variant: Variant, framework: str) -> tuple[object, ...]:
    package = package_of(variant, framework)
    return canonicalize_name(package.name), frozenset(package.extras), variant.index, variant.find_links
