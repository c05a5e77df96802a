"""The environments that releases named on the command line become.

The nearest environment of the matrix with packages is the template; one of the matrix that has this very release, and
does not float, is taken as it is. Python is the template's, or the newest of the matrix that has a wheel, or a newer.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from runner.core.architectures import USUAL, Architecture
from runner.core.errors import NothingSelectedError, Problem, UsageError
from runner.core.model import Device
from runner.matrix import Environment, Matrix, Variant
from runner.matrix.select import release_key
from runner.plan.specs import OLDEST_PYTHON
from runner.releases import nightly_builds
from runner.releases.candidates import (
    PACKAGES,
    ReleaseCandidate,
    made_from,
    of_matrix,
    package_of,
    templates,
    version_key,
)
from runner.releases.index import Lister
from runner.releases.named import NamedRelease, declared_id
from runner.releases.nightly_builds import DEFAULT, day_of
from runner.releases.release_files import PYTHONS, has_wheel, pythons_of

USUAL_PYTHON = "3.11"
"""Of a framework that the matrix has no environment of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFinder:
    """Finds the environments of named releases.

    Attributes:
        matrix: the checked matrix, with all variants.
        folder: what the paths of its locks are relative to.
        device: ``cpu`` or ``cuda``.
        versions: lists the versions of a package, see ``releases.index.versions``.
        pythons: returns the Pythons that a release of a package has wheels for, see ``release_files.pythons_of``.
        has_wheel: see ``release_files``; ``versions`` is called where it is False, for pip may have other indexes.
    """

    matrix: Matrix
    folder: Path
    device: Device
    versions: Lister
    pythons: Callable[[str, str], tuple[str, ...]] = pythons_of
    has_wheel: Callable[[str, str, str], bool] = has_wheel
    _listed: dict[tuple[str, str, str], tuple[tuple[str, ...], str]] = field(default_factory=dict)

    def possible(self, named: NamedRelease) -> Iterator[ReleaseCandidate]:
        """Yield the environments that a named release may become, the first choice first; no index is asked.

        It is one of the matrix where that has this very release, or else one for each template and Python; none for a
        nightly build whose version is not known yet, see ``dated``.
        """
        declared = declared_id(self.matrix, named)
        of_file = [candidate for candidate in self._known(named) if candidate.name == declared]
        if of_file:
            yield from of_file
        elif named.version:
            for template, python, pin in self._choices(named):
                yield self._made(named, template, python, pin)

    def find(self, named: NamedRelease) -> ReleaseCandidate:
        """Return the first choice that there is: of the matrix, or with a wheel on the index.

        Raises:
            NothingSelectedError: the index has no such release, or none for a Python that the matrix has.
            UsageError: the framework has no nightly builds that are named by their day.
            ProvisionError: the index does not answer.
        """
        named = self.dated(named)
        for candidate in self.possible(named):
            if candidate.source == "matrix" or self._has_wheel(candidate, named):
                return candidate
        raise self._missing(named)

    def dated(self, named: NamedRelease) -> NamedRelease:
        """Return a nightly build with the version of its day on the index; others as they are. Raises as ``find``."""
        if named.version:
            return named
        if named.framework not in nightly_builds.FRAMEWORKS:
            message = f"the nightly builds of {named.framework} are not named by their day"
            hint = f"{', '.join(nightly_builds.FRAMEWORKS)} have such builds"
            raise UsageError(Problem(message, hint=hint))
        for template, python, pin in self._choices(named):
            names = self._list(pin.name, python, self._index(named, template))
            of_day = [name for name in names if day_of(name) == named.day]
            if of_day:
                newest = max(of_day, key=version_key)  # type: ignore[arg-type]  # pip lists versions
                return replace(named, version=newest.partition("+")[0])
        raise self._missing(named)

    def _known(self, named: NamedRelease) -> list[ReleaseCandidate]:
        return [*of_matrix(self.matrix, named.framework, self.device, self.folder)]

    def _choices(self, named: NamedRelease) -> Iterator[tuple[ReleaseCandidate, str, Requirement]]:
        """Yield templates with the Pythons and packages to try, the nearest template first; of a day, the newest."""
        usable = [*templates(self._known(named), self.device)]
        if named.version:
            nearest = sorted(usable, key=lambda each: _distance(each.release, named.version))
        else:
            nearest = sorted(usable, key=lambda each: version_key(each.release), reverse=True)  # type: ignore[arg-type,return-value]  # of_matrix has versions
        for template in nearest or [_usual(named.framework, self.matrix.architecture)]:
            pin = package_of(self._variant(template), template.environment.framework)
            for python in self._pythons(named, template):
                for each in nightly_builds.packages_of(pin, named.kind):
                    yield template, python, each

    def _pythons(self, named: NamedRelease, template: ReleaseCandidate) -> Iterator[str]:
        """Yield the Python versions to try, in order.

        If the selector names a version, it is the only one. Otherwise, the template's version comes first, then
        those of the matrix, then newer ones.
        """
        if named.python:
            yield named.python
            return
        of_matrix = sorted(_pythons_of(self.matrix), key=Version, reverse=True)
        newer = (each for each in PYTHONS if Version(each) > Version([*of_matrix, USUAL_PYTHON][0]))
        yield from dict.fromkeys((template.environment.python or USUAL_PYTHON, *of_matrix, *newer))

    def _list(self, package: str, python: str, nightly: str) -> tuple[str, ...]:
        """Return the versions of a package that have a wheel for a Python; see ``releases.index.versions``."""
        if (package, python, nightly) not in self._listed:
            self._listed[package, python, nightly] = self.versions(package, python, nightly)
        return self._listed[package, python, nightly][0]

    def _has_wheel(self, candidate: ReleaseCandidate, named: NamedRelease) -> bool:
        key, (text, *_) = release_key(named.version), self._variant(candidate).requirements
        package, python = Requirement(text).name, candidate.environment.python or ""
        index = self._index(named, candidate)
        if not index and self.has_wheel(package, named.version, python):
            return True
        if python not in {USUAL_PYTHON, named.python, *_pythons_of(self.matrix)}:
            return False  # to list the versions for each newer Python would take seconds
        listed = self._list(package, python, index)
        return any(release_key(each) == key for each in listed)

    def _variant(self, candidate: ReleaseCandidate) -> Variant:
        variant = candidate.environment.variant(self.device)
        assert variant is not None
        return variant

    def _index(self, named: NamedRelease, candidate: ReleaseCandidate) -> str:
        """Return what lists the builds of a kind: see ``releases.index.versions``."""
        variant, kind = self._variant(candidate), named.kind
        index = nightly_builds.index_of(named.framework, variant, self.device, kind)
        return index or ("" if kind == "release" else DEFAULT)

    def _made(self, named: NamedRelease, template: ReleaseCandidate, python: str, pin: Requirement) -> ReleaseCandidate:
        replaced = {str(canonicalize_name(Requirement(text).name)) for text in named.packages}
        bare = replace(template, environment=_without(template.environment, replaced))
        index = nightly_builds.index_of(named.framework, self._variant(template), self.device, named.kind)
        made = made_from(bare, pin, named.version, self.device, index, named.packages)
        environment = with_python(made.environment, python)
        return replace(made, name=named.id, environment=environment, exact=named.packages)

    def _missing(self, named: NamedRelease) -> NothingSelectedError:
        """Return the error of a release that no Python has a wheel of, with the nearest ones that exist."""
        listed = list(dict.fromkeys(version for versions, _ in self._listed.values() for version in versions))
        pythons = list(dict.fromkeys(python for _, python, _ in self._listed))
        where = "" if self.matrix.architecture == USUAL else f" on {self.matrix.architecture}"
        message = f"the index has no wheel of {named.text} for Python {', '.join(pythons)}{where}"
        package = next(iter(self._listed))[0]
        others = [each for each in self.pythons(package, named.version) if each not in pythons] if named.version else []
        if others:
            return NothingSelectedError(Problem(message, hint=_with_another_python(named, others)))
        if not listed:
            reason = next((f": {problem}" for _, problem in self._listed.values() if problem), "")
            kind = {"release": "release", "candidate": "release", "nightly": "nightly build"}[named.kind]
            return NothingSelectedError(Problem(f"the index lists no {kind} of {named.framework}{reason}"))
        return NothingSelectedError(Problem(message, hint=f"did you mean {' or '.join(_nearest(named, listed))}?"))


def _with_another_python(named: NamedRelease, pythons: Sequence[str]) -> str:
    """Return for which Pythons a release has wheels, the oldest first, and the word that names it with the newest."""
    newest = pythons[-1]
    if tuple(map(int, newest.split("."))) >= OLDEST_PYTHON:
        rest = f": {named.framework}=={named.version}@py{newest}"
    else:
        rest = f", and the harness needs Python {'.'.join(map(str, OLDEST_PYTHON))} or newer"
    return f"it has wheels for Python {', '.join(pythons)}{rest}"


def _nearest(named: NamedRelease, listed: Sequence[str]) -> list[str]:
    """Return what names the nearest ones of some versions: the next older and the next newer, or the nearest days."""
    if named.day:
        days = sorted({*map(day_of, listed)} - {""}, key=lambda day: abs(int(day) - int(named.day)))
        return [f"{named.framework}@nightly-{day}" for day in days[:2]] or [f"{named.framework}=={listed[0]}"]
    order, version = sorted(listed, key=Version), Version(named.version)
    near = [each for each in order if Version(each) < version][-1:] + [
        each for each in order if Version(each) > version
    ][:1]
    return [f"{named.framework}=={each}" for each in near or listed[:1]]


def _usual(framework: str, architecture: Architecture) -> ReleaseCandidate:
    """Return the template of a framework that the matrix has no environment of: its package alone."""
    package = PACKAGES[framework][0]
    values: Mapping[str, object] = {
        "framework": framework,
        "release": "*",
        "python": USUAL_PYTHON,
        "requirements": [package],
    }
    environment = Environment.model_validate(values).for_architecture(architecture)
    return ReleaseCandidate(name=framework, release="*", source="matrix", environment=environment)


def _pythons_of(matrix: Matrix) -> set[str]:
    return {each.python for each in matrix.environments.values() if each.python}


def _distance(release: str, version: str) -> tuple[int, ...]:
    """Return how far a release is from a version: what differs in each of its first three numbers."""
    first, other = release_key(release), release_key(version)
    assert first is not None
    assert other is not None
    numbers = [(*key.release, 0, 0, 0)[:3] for key in (first, other)]
    return tuple(abs(a - b) for a, b in zip(*numbers, strict=True))


def _without(environment: Environment, packages: set[str]) -> Environment:
    """Return an environment without its requirements of some packages."""

    def kept(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(text for text in texts if canonicalize_name(Requirement(text).name) not in packages)

    variants = {
        name: each.model_copy(update={"requirements": kept(each.requirements)})
        for name, each in environment.variants.items()
    }
    return environment.model_copy(update={"requirements": kept(environment.requirements), "variants": variants})


def with_python(environment: Environment, python: str) -> Environment:
    """Return an environment with another Python, and with its base images of that Python."""
    if environment.python == python:
        return environment

    def of_python(base: str | None) -> str | None:
        return base and re.sub(r"^(python:)[0-9]+\.[0-9]+", rf"\g<1>{python}", base)

    variants = {
        key: each.model_copy(update={"base": of_python(each.base)}) for key, each in environment.variants.items()
    }
    return environment.model_copy(update={"python": python, "variants": variants, "base": of_python(environment.base)})
