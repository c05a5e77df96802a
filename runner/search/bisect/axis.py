"""What every axis of a search needs to find its candidates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import InvalidVersion, Version

from runner.core.bounds import MAX_SHOWN
from runner.core.errors import OutageError, Problem, ProvisionError, UsageError
from runner.core.model import Device
from runner.core.text import printable
from runner.matrix import Matrix
from runner.releases import candidates as of
from runner.releases.candidates import ReleaseCandidate
from runner.releases.index import Lister


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAxis:
    """Finds candidates.

    Attributes:
        matrix: the checked matrix, with all variants.
        folder: the folder of the matrix file.
        device: ``cpu`` or ``cuda``.
        versions: lists the versions of a package, see ``releases.index.versions``.
        notes: takes sentences about what is not available.
        locks: environment -> its lock, of those that the matrix file has no lock for.
    """

    matrix: Matrix
    folder: Path
    device: Device
    versions: Lister
    notes: list[str]
    locks: Mapping[str, Path] = field(default_factory=dict)

    def environment(self, name: str) -> ReleaseCandidate:
        """Return an environment of the matrix; raises UsageError if it is not there, or has no build for the device."""
        environment = self.matrix.environments.get(name)
        if environment is None or environment.variant(self.device) is None:
            why = "is not in the matrix" if environment is None else f"has no variant for {self.device}"
            hint = "`runner list environments` lists them"
            raise UsageError(Problem(f"the environment {name!r} {why}", hint=hint))
        release = of.exact_release(environment, self.device, self.folder)
        return ReleaseCandidate(name=name, release=release, source="matrix", environment=environment)

    def listed(self, package: str, python: str, nightly: str) -> tuple[tuple[str, ...], str]:
        """Return the versions of a package, and why there are none.

        Raises:
            OutageError: an index does not answer: a search without its releases would name a wider range.
        """
        try:
            return self.versions(package, python, nightly)
        except ProvisionError as error:
            hint = "try again later; with PIP_NO_INDEX=1, the environments of the matrix are the only candidates"
            raise OutageError(Problem(error.problems[0].message, hint=hint)) from error

    def needs_gpu(self, axis: str) -> None:
        """Raise UsageError where the search measures on the CPU."""
        if self.device != "cuda":
            message = f"the axis {axis} needs an NVIDIA GPU, and this search measures on the CPU"
            raise UsageError(Problem(message, hint="run it on a machine with a GPU, or bisect the axis release"))


def refuse_no_version(text: str) -> None:
    """Raise UsageError where a stored release is no version: it becomes a requirement."""
    try:
        Version(text)
    except InvalidVersion as error:
        message = f"{printable(text, MAX_SHOWN)!r} in the stored search is no version"
        raise UsageError(Problem(message)) from error
