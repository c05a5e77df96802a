"""Releases as they are named on the command line, ``torch==2.9.1``: how they are read, and their ids.

``named_environments`` finds the environments that they stand for, and ``named_locks`` has their locks.

>>> parse_named("torch==2.9.1,transformers==4.57.0@py3.10")
NamedRelease(framework='torch', version='2.9.1', packages=('transformers==4.57.0',), python='3.10', day='')
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from types import MappingProxyType

from packaging.utils import canonicalize_name
from packaging.version import Version

from runner.core.bounds import MAX_SHOWN
from runner.core.errors import Problem, UsageError
from runner.core.model import Device
from runner.core.text import printable
from runner.matrix import FRAMEWORK_ALIASES, Matrix
from runner.matrix.fields import LONGEST_ID
from runner.matrix.select import release_key
from runner.releases import nightly_builds
from runner.releases.candidates import PACKAGES
from runner.releases.nightly_builds import Kind, kind_of

_VERSION = r"[0-9][0-9A-Za-z.+_]{0,60}"
_PACKAGE = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,60}[A-Za-z0-9])?"
NAMED = re.compile(
    rf"(?P<name>{_PACKAGE})(==(?P<version>{_VERSION})|@nightly-(?P<day>[0-9]{{8}}))"
    rf"(?P<packages>(,{_PACKAGE}=={_VERSION})*)(@py(?P<python>[23]\.[0-9]{{1,2}}))?"
)
_DIGITS = 12
_SHORT = re.compile(r"^([0-9]+)(\.[0-9]+)?(?![0-9.])")
"""A version of one or two numbers: torch==2.1 is 2.1.0, and the torch-2.1 of a matrix another release."""
FRAMEWORK_OF = {
    name: framework
    for framework, packages in PACKAGES.items()
    for package in packages
    for name in (package, *nightly_builds.PACKAGES.get(package, ()))
}
"""Package -> the framework that it holds, in a release or in a nightly build."""


@dataclass(frozen=True, slots=True)
class NamedRelease:
    """A release as it was typed.

    Attributes:
        framework: its framework.
        version: as pip writes it, ``2.9.1`` or ``2.9.1+cu126``; empty for a nightly build until the index was asked.
        packages: requirements beside it, each with its exact version.
        python: the minor version of Python that was asked for; empty for the one of the template.
        day: that of a nightly build that was named by it, ``20261101``; empty for others.
    """

    framework: str
    version: str
    packages: tuple[str, ...] = ()
    python: str = ""
    day: str = ""

    @property
    def kind(self) -> Kind:
        """Whether it is a release, a release candidate or a nightly build."""
        return "nightly" if self.day else kind_of(self.version)

    @property
    def id(self) -> str:
        """The id of its environment, the same on every day and machine: ``torch-2.9.1-transformers-4.57.0-py3.10``.

        One that would be too long ends in digits that stand for the rest.
        """
        build = _SHORT.sub(lambda match: f"{match[1]}{match[2] or '.0'}.0", self._build)
        parts = [self.framework, build]
        for text in self.packages:
            name, _, its_version = text.partition("==")
            parts += [canonicalize_name(name), its_version]
        parts += [f"py{self.python}"] if self.python else []
        words = re.sub(r"[^a-z0-9.]+", "-", "-".join(parts).lower()).strip("-.")
        if len(words) <= LONGEST_ID:
            return words
        digest = sha256(words.encode()).hexdigest()[:_DIGITS]
        return f"{words[: LONGEST_ID - _DIGITS - 1].rstrip('-.')}-{digest}"

    @property
    def text(self) -> str:
        """How a message names it."""
        return f"{self.framework} {self._build}"

    @property
    def _build(self) -> str:
        return f"nightly-{self.day}" if self.day else self.version


def parse_named(text: str) -> NamedRelease | None:
    """Return the release that a word of the command line names; None where it is no release of a framework.

    ``tf`` and other aliases of frameworks count, and every package that holds a framework. ``torch@nightly-20261101``
    names the nightly build of a day. A range, such as ``torch==2.*``, names environments of the matrix.

    Raises:
        UsageError: it names a package twice, or a date that does not exist.
    """
    match = NAMED.fullmatch(text)
    if match is None:
        return None
    name = canonicalize_name(match["name"])
    framework = FRAMEWORK_OF.get(name) or FRAMEWORK_ALIASES.get(name)
    if framework is None:
        return None
    packages = tuple(match["packages"].strip(",").split(",")) if match["packages"] else ()
    versions = (match["version"] or "0", *(each.partition("==")[2] for each in packages))
    if not all(map(_is_version, versions)):
        return None
    named = NamedRelease(framework, match["version"] or "", packages, match["python"] or "", match["day"] or "")
    _refuse(named, text)
    return named


def _is_version(text: str) -> bool:
    """Return whether a requirement can have a version."""
    try:
        Version(text)
    except ValueError:  # InvalidVersion, or a number of more digits than int() takes
        return False
    return True


def _refuse(named: NamedRelease, text: str) -> None:
    """Raise UsageError where a named release has two versions of a package, or a date that does not exist."""
    names = [canonicalize_name(each.partition("==")[0]) for each in named.packages]
    held = [named.framework, *(FRAMEWORK_OF.get(name, name) for name in names)]
    if twice := next((name for name in held if held.count(name) > 1), None):
        raise UsageError(Problem(f"{printable(text, MAX_SHOWN)!r} names {twice} twice", hint="name one version of it"))
    if named.day and not _is_day(named.day):
        hint = "write year, month and day, such as torch@nightly-20261101"
        raise UsageError(Problem(f"{named.day} is not a date", hint=hint))


def _is_day(text: str) -> bool:
    """Return whether eight digits are a date.

    >>> _is_day("20261101"), _is_day("20269999"), _is_day("00000000")
    (True, False, False)
    """
    try:
        date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        return False
    return True


def refuse_taken(matrix: Matrix, named: NamedRelease, device: Device) -> None:
    """Raise UsageError where the matrix has another environment under the id of a named release.

    One that is the same release, and has no build for a device, is not another: what is named is its build.
    """
    environment = matrix.environments.get(named.id)
    if environment is None or (declared_id(matrix, named) == named.id and environment.variant(device) is None):
        return
    message = f"{named.id} is an environment of the matrix with {environment.framework} {environment.release}"
    hint = f"give it another name there, or name it: {named.id} is measured as it is"
    raise UsageError(Problem(f"{message}, and not {named.text} alone", hint=hint))


def declared_id(matrix: Matrix, named: NamedRelease) -> str | None:
    """Return the environment of the matrix that has a named release alone, and does not float; None without one."""
    if named.packages or named.python or named.day or "+" in named.version:
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
    match = re.match(r"[^/@]*(@nightly-[0-9]{8}(,[^/@]*)?(?=[/@]|$))?(@py[23]\.[0-9]{1,2}(?=[/@]|$))?", rest)
    assert match is not None
    return mark, match[0], rest[match.end() :]


def with_id(selector: str, matrix: Matrix | None) -> str:
    """Return a selector with the id of the release that it names; as it is where it names none.

    >>> with_id("torch==2.9.1@env:A=1", None)
    'torch-2.9.1@env:A=1'
    """
    mark, _, rest = split_selector(selector)
    name = id_of(selector, matrix)
    return selector if name is None else f"{mark}{name}{rest}"


def id_of(selector: str, matrix: Matrix | None) -> str | None:
    """Return the id of the release that a selector names; None where it names none.

    >>> id_of("!torch==2.9.1@env:A=1", None)
    'torch-2.9.1'
    """
    named = parse_named(split_selector(selector)[1])
    if named is None:
        return None
    return (matrix and declared_id(matrix, named)) or named.id


def as_typed(
    ids: Sequence[str], selectors: Sequence[str], as_is: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """Return ids of environments and cells with named releases as they were typed: no matrix file has them.

    Args:
        ids: of environments, or of their cells.
        selectors: as they were typed.
        as_is: environment -> the interpreter or the image that it is, ``python:PATH``.

    >>> as_typed(["torch-2.9.1@env:A=1", "torch-1.0"], ["torch==2.9.1@env:A=1", "torch-1.0"])
    ['torch==2.9.1@env:A=1', 'torch-1.0']
    """
    words = [name for _, name, _ in map(split_selector, selectors)]
    typed = {named.id: word for word in words if (named := parse_named(word)) is not None}
    typed |= {name: f"{name}={word}" for name, word in as_is.items()}
    parts = (split_selector(name) for name in ids)
    return [f"{typed.get(name, name)}{rest}" for _, name, rest in parts]
