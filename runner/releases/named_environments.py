"""The environments that releases named on the command line become.

The nearest environment of the matrix with packages is the template; one of the matrix that has this very release, and
does not float, is taken as it is. Python is the template's, or the newest of the matrix that has a wheel.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from runner.core.errors import NothingSelectedError, Problem
from runner.core.model import Device
from runner.matrix import Environment, Matrix
from runner.matrix.select import release_key
from runner.releases.candidates import PACKAGES, ReleaseCandidate, made_from, of_matrix, package_of, templates
from runner.releases.index import Lister
from runner.releases.named import NamedRelease, declared_id

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
    """

    matrix: Matrix
    folder: Path
    device: Device
    versions: Lister
    _listed: dict[tuple[str, str], tuple[tuple[str, ...], str]] = field(default_factory=dict)

    def possible(self, named: NamedRelease) -> Iterator[ReleaseCandidate]:
        """Yield the environments that a named release may become, the first choice first; no index is asked.

        It is one of the matrix where that has this very release, or else one for each template and Python.
        """
        known = [*of_matrix(self.matrix, named.framework, self.device, self.folder)]
        declared = declared_id(self.matrix, named)
        of_file = [candidate for candidate in known if candidate.name == declared]
        if of_file:
            yield from of_file
            return
        nearest = sorted(templates(known, self.device), key=lambda each: _distance(each.release, named.version))
        for template in nearest or [_usual(named.framework)]:
            for python in self._pythons(named, template):
                yield self._made(named, template, python)

    def find(self, named: NamedRelease) -> ReleaseCandidate:
        """Return the first choice that there is: of the matrix, or with a wheel on the index.

        Raises:
            NothingSelectedError: the index has no such release, or none for a Python that the matrix has.
            ProvisionError: the index does not answer.
        """
        for candidate in self.possible(named):
            if candidate.source == "matrix" or self._has_wheel(candidate, named):
                return candidate
        raise self._missing(named)

    def _pythons(self, named: NamedRelease, template: ReleaseCandidate) -> Iterator[str]:
        """Yield the Pythons to try: the one that was asked for, or else the template's, and those of the matrix."""
        if named.python:
            yield named.python
            return
        of_matrix = {each.python for each in self.matrix.environments.values() if each.python}
        first = template.environment.python or USUAL_PYTHON
        yield from dict.fromkeys((first, *sorted(of_matrix, key=Version, reverse=True)))

    def _list(self, package: str, python: str) -> tuple[str, ...]:
        """Return the versions of a package that have a wheel for a Python."""
        if (package, python) not in self._listed:
            self._listed[package, python] = self.versions(package, python, "")
        return self._listed[package, python][0]

    def _has_wheel(self, candidate: ReleaseCandidate, named: NamedRelease) -> bool:
        key, package = release_key(named.version), self._pin(candidate).name
        return any(release_key(each) == key for each in self._list(package, candidate.environment.python or ""))

    def _pin(self, candidate: ReleaseCandidate) -> Requirement:
        """Return the requirement of a candidate that names its framework."""
        variant = candidate.environment.variant(self.device)
        assert variant is not None
        return package_of(variant, candidate.environment.framework)

    def _made(self, named: NamedRelease, template: ReleaseCandidate, python: str) -> ReleaseCandidate:
        replaced = {str(canonicalize_name(Requirement(text).name)) for text in named.packages}
        bare = replace(template, environment=_without(template.environment, replaced))
        made = made_from(bare, self._pin(template), named.version, self.device, packages=named.packages)
        environment = _with_python(made.environment, python)
        return replace(made, name=named.id, environment=environment)

    def _missing(self, named: NamedRelease) -> NothingSelectedError:
        """Return the error of a release that no Python has a wheel of, with the nearest ones that exist."""
        listed = {version: python for (_, python), (versions, _) in self._listed.items() for version in versions}
        problems = [problem for _, problem in self._listed.values() if problem]
        if not listed:
            reason = f": {problems[0]}" if problems else ""
            return NothingSelectedError(Problem(f"the index lists no release of {named.framework}{reason}"))
        pythons = ", ".join(dict.fromkeys(python for _, python in self._listed))
        near = difflib.get_close_matches(named.version, listed, 2, 0.3) or list(listed)[:1]
        hint = f"did you mean {' or '.join(f'{named.framework}=={version}' for version in near)}?"
        message = f"the index has no wheel of {named.text} for Python {pythons}"
        return NothingSelectedError(Problem(message, hint=hint))


def _usual(framework: str) -> ReleaseCandidate:
    """Return the template of a framework that the matrix has no environment of: its package alone."""
    package = PACKAGES[framework][0]
    values: Mapping[str, object] = {
        "framework": framework,
        "release": "*",
        "python": USUAL_PYTHON,
        "requirements": [package],
    }
    environment = Environment.model_validate(values)
    return ReleaseCandidate(name=framework, release="*", source="matrix", environment=environment)


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


def _with_python(environment: Environment, python: str) -> Environment:
    """Return an environment with another Python, and with its base images of that Python."""
    if environment.python == python:
        return environment

    def of_python(base: str | None) -> str | None:
        return base and re.sub(r"^(python:)[0-9]+\.[0-9]+", rf"\g<1>{python}", base)

    variants = {
        name: each.model_copy(update={"base": of_python(each.base)}) for name, each in environment.variants.items()
    }
    return environment.model_copy(update={"python": python, "variants": variants, "base": of_python(environment.base)})
