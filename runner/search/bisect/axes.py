"""The candidates of a question: from the good end to the bad one, on the axis that varies."""

from collections.abc import Mapping, Sequence
from dataclasses import fields

from runner.core.errors import Problem, UsageError
from runner.releases.candidates import ReleaseCandidate
from runner.search.bisect.axis import SearchAxis
from runner.search.bisect.cuda_axis import CudaAxis
from runner.search.bisect.package_axis import PackageAxis
from runner.search.bisect.release_axis import ReleaseAxis
from runner.search.bisect.state import CandidateEntry, Question

MOST_CANDIDATES = 500
"""Candidates beyond which a search is refused: 500 releases take nine halvings."""

AXES: Mapping[str, type[CudaAxis | ReleaseAxis]] = {"release": ReleaseAxis, "nightly": ReleaseAxis, "cuda": CudaAxis}
"""The axes that are no package."""


class Axes(SearchAxis):
    """Finds the candidates of every axis."""

    __slots__ = ()

    def candidates(self, question: Question) -> tuple[ReleaseCandidate, ...]:
        """Return the candidates of a question, both ends included.

        Raises:
            UsageError: an end does not exist, or the axis is not available on this machine.
        """
        chosen = self._of(question).candidates(question)
        if len(chosen) > MOST_CANDIDATES:
            message = f"there are {len(chosen)} candidates between {question.good} and {question.bad}"
            raise UsageError(Problem(message, hint=f"name ends with at most {MOST_CANDIDATES} between them"))
        return chosen

    def stored(self, question: Question, entries: Sequence[CandidateEntry]) -> tuple[ReleaseCandidate, ...]:
        """Return the candidates of an unfinished search; the versions are not listed again.

        Raises:
            UsageError: the matrix no longer has one of them, or its template.
        """
        axis = self._of(question)
        return tuple(axis.stored(question, entry) for entry in entries)

    def _of(self, question: Question) -> CudaAxis | ReleaseAxis | PackageAxis:
        return AXES.get(question.axis, PackageAxis)(**{each.name: getattr(self, each.name) for each in fields(self)})
