"""What nox installs has one version for each package, and those are versions that pyproject.toml allows."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
RENEW = "`nox -s lock` renews constraints.txt"


def pins() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def declared() -> list[Requirement]:
    """Return every requirement of pyproject.toml: of the program, of its extras, and of the groups."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lists = [document["project"]["dependencies"], *document["project"]["optional-dependencies"].values()]
    lists += document["dependency-groups"].values()
    return [Requirement(each) for texts in lists for each in texts if isinstance(each, str)]


@pytest.mark.parametrize("requirement", declared(), ids=str)
def test_each_requirement_has_a_version_that_it_allows(requirement: Requirement) -> None:
    name = canonicalize_name(requirement.name)
    versions = [next(iter(pin.specifier)).version for pin in pins() if canonicalize_name(pin.name) == name]
    assert versions, f"constraints.txt has no {requirement.name}: {RENEW}"
    assert all(requirement.specifier.contains(version) for version in versions), RENEW


def test_each_line_is_one_version_of_a_package_from_the_index() -> None:
    for pin in pins():
        assert [each.operator for each in pin.specifier] == ["=="], pin
        assert pin.url is None, pin
        assert not pin.extras, f"pip refuses extras in a file of constraints: {pin}"
