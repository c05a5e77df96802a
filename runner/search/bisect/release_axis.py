"""The releases of a framework, or its nightly builds, as candidates of a search."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from packaging.requirements import Requirement

from runner.core.errors import Problem, UsageError
from runner.matrix.select import release_key
from runner.releases import candidates as of
from runner.releases import nightly_builds
from runner.releases.candidates import ReleaseCandidate, in_between, made_from, package_of
from runner.releases.named import parse_named
from runner.releases.nightly_builds import DEFAULT
from runner.search.bisect.axis import SearchAxis, refuse_no_version
from runner.search.bisect.model_cell import framework_of
from runner.search.bisect.state import CandidateEntry, Question


class ReleaseAxis(SearchAxis):
    """The release of the framework varies."""

    __slots__ = ()

    def candidates(self, question: Question) -> tuple[ReleaseCandidate, ...]:
        """Return the releases, or nightly builds, between two; raises UsageError if an end does not exist."""
        nightly = question.axis == "nightly"
        framework = framework_of(self.matrix, _named(question), question.cell.split("/")[1])
        known = [*of.of_matrix(self.matrix, framework, self.device, self.folder)]
        of_index = [*self._of_index(question, known, nightly=nightly)]
        complete = [each for each in known if not self._lacking(question, each) or self._is_image(each)]
        ends = [self._end(name, [*complete, *of_index, *known]) for name in (question.good, question.bad)]
        between = of_index if nightly else [*complete, *of_index]
        return in_between(between, *ends)

    def stored(self, question: Question, entry: CandidateEntry) -> ReleaseCandidate:
        """Return a candidate of an unfinished search; raises UsageError if the matrix has it no more."""
        template = self.environment(entry["template"] or entry["name"].partition(":")[0])
        if not entry["template"]:
            return replace(template, release=entry["release"])
        refuse_no_version(entry["release"])
        return self._made(question, template, entry["release"])

    def _lacking(self, question: Question, other: ReleaseCandidate) -> tuple[str, ...]:
        """Return the packages of the ends that another environment of the matrix lacks."""
        named = [name for name in dict.fromkeys(_named(question)) if name in self.matrix.environments]
        ends = [self.environment(name) for name in named if self.matrix.environments[name].variant(self.device)]
        return of.lacking_packages(ends, other, self.device)

    def _is_image(self, candidate: ReleaseCandidate) -> bool:
        variant = candidate.environment.variant(self.device)
        return variant is not None and variant.image is not None

    def _end(self, name: str, known: Sequence[ReleaseCandidate]) -> ReleaseCandidate:
        """Return the candidate of an end: an environment of the matrix, or a version.

        Raises:
            UsageError: there is none.
        """
        if name in self.matrix.environments:
            return self.environment(name)
        named = parse_named(name)
        key = release_key(named.version if named else name)
        same = [each for each in known if key is not None and release_key(each.release) == key]
        if same:
            return same[0]
        hint = "name an environment of the matrix, or a release of the package index, such as torch==1.4.0 or 1.4.0"
        raise UsageError(Problem(f"there is no environment and no release {name!r}", hint=hint))

    def _of_index(
        self, question: Question, known: Sequence[ReleaseCandidate], *, nightly: bool
    ) -> Iterator[ReleaseCandidate]:
        """Yield the versions of the index, each made from the nearest template whose Python has a wheel of it.

        The ends come first: what they have beside the framework, the others may lack.
        """
        listed: dict[str, set[str]] = {}
        usable = of.templates(known, self.device)
        if not usable:
            self.notes.append("no environment of the matrix is made of packages: only those of the matrix are measured")
        axis = "nightly" if nightly else "release"
        for template in usable:
            pin, python = self._pin(template, axis), template.environment.python or ""
            names, problem = self.listed(pin.name, python, self._nightly_index(template) or DEFAULT if nightly else "")
            listed[template.name] = {name for name in names if not nightly or release_key(name).is_devrelease}  # type: ignore[union-attr]  # pip lists versions
            if problem:
                kind = "nightly builds" if nightly else "releases"
                self.notes.append(f"{kind} of {pin.name} for Python {python} cannot be listed: {problem}")
        order = sorted({name for names in listed.values() for name in names}, key=of.version_key)  # type: ignore[arg-type]
        for version in order:
            near = sorted(
                usable, key=lambda each: (each.name not in _named(question), _distance(order, each.release, version))
            )
            template = next(each for each in near if version in listed[each.name])
            yield self._made(question, template, version)

    def _made(self, question: Question, template: ReleaseCandidate, version: str) -> ReleaseCandidate:
        """Return a version of the index that is made from a template, with the packages of the ends."""
        index, packages = "", self._lacking(question, template)
        if question.axis == "nightly":
            index = self._nightly_index(template)
        return made_from(template, self._pin(template, question.axis), version, self.device, index, packages)

    def _pin(self, template: ReleaseCandidate, axis: str) -> Requirement:
        variant = template.environment.variant(self.device)
        assert variant is not None
        pin = package_of(variant, template.environment.framework)
        return nightly_builds.packages_of(pin, "nightly" if axis == "nightly" else "release")[0]

    def _nightly_index(self, template: ReleaseCandidate) -> str:
        variant = template.environment.variant(self.device)
        assert variant is not None
        return nightly_builds.index_of(template.environment.framework, variant, self.device, "nightly")


def _named(question: Question) -> tuple[str, ...]:
    """Return the names that may be environments of the matrix: the ends, and the environment of the cell."""
    return question.good, question.bad, question.environment


def _distance(order: Sequence[str], release: str, version: str) -> int:
    """Return how many listed versions lie between a template's release and a version."""
    keys = [of.version_key(name) for name in order]
    low, high = sorted((of.version_key(release), of.version_key(version)))  # type: ignore[type-var]
    return sum(low < key <= high for key in keys)  # type: ignore[operator]
