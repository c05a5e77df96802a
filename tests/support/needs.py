"""``--need docker,slurm``: what tests need beyond Python, each with what happens where it is named.

A test asks ``needs.given`` whether a need was named, or says with ``needs.missing`` that this machine lacks it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

import pytest

NEEDS = {
    "docker": "tests that need an engine fail where none answers",
    "postgresql": "tests that need PostgreSQL fail where it is missing",
    "slurm": "tests that need Slurm fail where it is missing",
    "podman": "tests that need Podman fail where it is missing",
    "networks": "tests that need network namespaces fail where there are none",
    "browser": "tests that need Chromium fail where there is none",
    "frameworks": "make the framework environments that are missing",
    "releases": "install each minor release of the frameworks, and start it",
    "faults": "run every fault, where CI runs some",
    "slow": "run the tests that take minutes, or repeat another one on the other backend, too",
}
"""Name -> what ``--need`` with the name does. Without it, such tests are skipped or left out."""


def add_option(parser: pytest.Parser) -> None:
    """Declare ``--need``."""
    described = "; ".join(f"{name}: {text}" for name, text in NEEDS.items())
    parser.addoption("--need", action="append", default=[], metavar="NAME[,NAME]", help=described)


def named(values: Iterable[str]) -> frozenset[str]:
    """Return the needs that the values of ``--need`` name.

    Raises:
        pytest.UsageError: NEEDS has no such name.
    """
    names = [name.strip() for value in values for name in value.split(",")]
    for name in names:
        if name not in NEEDS:
            raise pytest.UsageError(f"--need does not know {name!r}; it knows {', '.join(NEEDS)}")
    return frozenset(names)


def given(config: pytest.Config, name: str) -> bool:
    """Return True if ``--need`` named a need."""
    if name not in NEEDS:
        raise KeyError(name)
    values: Sequence[str] = config.getoption("--need")
    return name in named(values)


def missing(config: pytest.Config, name: str, reason: str) -> NoReturn:
    """Skip the test, for this machine lacks what it needs; fail where ``--need`` named that."""
    if given(config, name):
        pytest.fail(f"--need {name} was given, and {reason}")
    pytest.skip(reason)


def slow(*values: Any) -> Iterator[Any]:
    """Mark values of a parametrized test as slow; a tuple has a value for each of its parameters.

    >>> [case.values for case in slow(("venv", 1), ("docker", 2))]
    [('venv', 1), ('docker', 2)]
    """
    for each in values:
        yield pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.slow)


def skip_slow(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Skip the slow tests among the items before their fixtures are made, unless ``--need slow`` was given."""
    if given(config, "slow"):
        return
    skip = pytest.mark.skip(reason="takes minutes, or repeats another test: --need slow runs it")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)
