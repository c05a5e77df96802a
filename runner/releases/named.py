"""Releases as they are named on the command line, ``torch==2.9.1``: how they are read, and their ids.

``named_environments`` finds the environments that they stand for, and ``session.named_releases`` their locks.

>>> parse_named("torch==2.9.1,transformers==4.57.0@py3.10")
NamedRelease(framework='torch', version='2.9.1', packages=('transformers==4.57.0',), python='3.10')
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from packaging.utils import canonicalize_name

from runner.matrix import FRAMEWORK_ALIASES, Matrix
from runner.matrix.select import release_key
from runner.releases.candidates import PACKAGES

_VERSION = r"[0-9][0-9A-Za-z.!+_]{0,60}"
_PACKAGE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}"
NAMED = re.compile(
    rf"(?P<name>{_PACKAGE})==(?P<version>{_VERSION})(?P<packages>(,{_PACKAGE}=={_VERSION})*)(@py(?P<python>[23]\.[0-9]+))?"
)
FRAMEWORK_OF = {package: framework for framework, packages in PACKAGES.items() for package in packages}
"""Package -> the framework that it holds."""


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
