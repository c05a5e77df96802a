"""Releases that are named on the command line, ``torch==2.9.1``: the environments that they stand for.

The nearest environment of the matrix with packages is the template; one of the matrix that has this very release, and
does not float, is taken as it is. The lock of a new one is made by ``session.named_releases``.

>>> parse_named("torch==2.9.1,transformers==4.57.0@py3.10")
NamedRelease(framework='torch', version='2.9.1', packages=('transformers==4.57.0',), python='3.10')
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
from runner.matrix import FRAMEWORK_ALIASES, Environment, Matrix
from runner.matrix.select import release_key
from runner.releases.candidates import PACKAGES, ReleaseCandidate, made_from, of_matrix, package_of, templates
from runner.releases.index import Lister

_VERSION = r"[0-9][0-9A-Za-z.!+_]{0,60}"
_PACKAGE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}"
NAMED = re.compile(
    rf"(?P<name>{_PACKAGE})==(?P<version>{_VERSION})(?P<packages>(,{_PACKAGE}=={_VERSION})*)(@py(?P<python>[23]\.[0-9]+))?"
)
FRAMEWORK_OF = {package: framework for framework, packages in PACKAGES.items() for package in packages}
"""Package -> the framework that it holds."""
USUAL_PYTHON = "3.11"
"""Of a framework that the matrix has no environment of."""


@dataclass(frozen=True, slots=True)
class NamedRelease:
    """A release as it was typed.

    Attributes:
        framework: its framework.
        version: as pip writes it, ``2.9.1`` or ``2.9.1+cu126``.
        packages: requirements beside it, each with its exact version.
        python: the minor version of Python that was asked for; empty for the one of the template.
    """

    framework: str
    version: str
    packages: tuple[str, ...] = ()
    python: str = ""

    @property
    def id(self) -> str:
        """The id of its environment, the same on every day and machine: ``torch-2.9.1-transformers-4.57.0-py3.10``."""
        parts = [self.framework, self.version, *(text.replace("==", "-") for text in self.packages)]
        parts += [f"py{self.python}"] if self.python else []
        return re.sub(r"[^a-z0-9.]+", "-", "-".join(parts).lower()).strip("-.")

    @property
    def text(self) -> str:
        """How a message names it."""
        return f"{self.framework} {self.version}"


def parse_named(text: str) -> NamedRelease | None:
    """Return the release that a word of the command line names; None where it is no release of a framework.

    ``tf`` and other aliases of frameworks count, and every package that holds a framework. A range, such as
    ``torch==2.*``, names environments of the matrix.
    """
    match = NAMED.fullmatch(text)
    if match is None or release_key(match["version"]) is None:
        return None
    name = canonicalize_name(match["name"])
    framework = FRAMEWORK_OF.get(name) or FRAMEWORK_ALIASES.get(name)
    if framework is None:
        return None
    packages = tuple(match["packages"].strip(",").split(",")) if match["packages"] else ()
    return NamedRelease(framework, match["version"], packages, match["python"] or "")


def declared_id(matrix: Matrix, named: NamedRelease) -> str | None:
    """Return the environment of the matrix that has a named release alone, and does not float; None without one."""
    if named.packages or named.python or "+" in named.version:
        return None
    key = release_key(named.version)
    return next(
        (
            name
            for name, each in matrix.environments.items()
            if each.framework == named.framework
            and not (each.env or each.add or "*" in each.release)
            and release_key(each.release) == key
        ),
        None,
    )


def split_selector(selector: str) -> tuple[str, str, str]:
    """Return the ``!`` in front of a selector, the name in it, and what follows: variables, threads, a run, cells.

    >>> split_selector("!torch==2.9.1@env:A=1/nn-lstm/*")
    ('!', 'torch==2.9.1', '@env:A=1/nn-lstm/*')
    """
    mark, rest = ("!", selector[1:]) if selector.startswith("!") else ("", selector)
    match = re.match(r"[^/@]*(@py[23]\.[0-9]+(?=[/@]|$))?", rest)
    assert match is not None
    return mark, match[0], rest[match.end() :]


def with_id(selector: str, matrix: Matrix | None) -> str:
    """Return a selector with the id of the release that it names; as it is where it names none.

    >>> with_id("torch==2.9.1@env:A=1", None)
    'torch-2.9.1@env:A=1'
    """
    mark, name, rest = split_selector(selector)
    named = parse_named(name)
    if named is None:
        return selector
    return f"{mark}{(matrix and declared_id(matrix, named)) or named.id}{rest}"


def as_typed(ids: Sequence[str], selectors: Sequence[str]) -> list[str]:
    """Return ids of environments, those of named releases as they were typed: no matrix file has them.

    >>> as_typed(["torch-2.9.1@env:A=1", "torch-1.0"], ["torch==2.9.1@env:A=1", "torch-1.0"])
    ['torch==2.9.1@env:A=1', 'torch-1.0']
    """
    words = [name for _, name, _ in map(split_selector, selectors)]
    typed = {named.id: word for word in words if (named := parse_named(word)) is not None}
    parts = (split_selector(name) for name in ids)
    return [f"{typed.get(name, name)}{rest}" for _, name, rest in parts]


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

    def find(self, named: NamedRelease) -> ReleaseCandidate:
        """Return the environment of a named release: one of the matrix, or a new one, not yet locked.

        Raises:
            NothingSelectedError: the index has no such release, or none for a Python that the matrix has.
            ProvisionError: the index does not answer.
        """
        known = [*of_matrix(self.matrix, named.framework, self.device, self.folder)]
        declared = declared_id(self.matrix, named)
        for candidate in known:
            if candidate.name == declared:
                return candidate
        nearest = sorted(templates(known, self.device), key=lambda each: _distance(each.release, named.version))
        for template in nearest or [_usual(named.framework)]:
            for python in self._pythons(named, template):
                if self._has(named, template, python):
                    return self._made(named, template, python)
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

    def _has(self, named: NamedRelease, template: ReleaseCandidate, python: str) -> bool:
        key = release_key(named.version)
        return any(release_key(each) == key for each in self._list(self._pin(template).name, python))

    def _pin(self, template: ReleaseCandidate) -> Requirement:
        variant = template.environment.variant(self.device)
        assert variant is not None
        return package_of(variant, template.environment.framework)

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
