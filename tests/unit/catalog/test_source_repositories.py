"""Which revision a release was made from, and where the changes between two of them are shown."""

import pytest

from runner.catalog.source_repositories import REPOSITORIES, compare_link, revision
from runner.releases.candidates import COMPANIONS, PACKAGES

COMMIT = "cf30153c4c131c8164ee7798e5022d810682e2cb"


def test_every_framework_and_its_companions_have_a_repository() -> None:
    assert {*PACKAGES, *(name for names in COMPANIONS.values() for name in names)} <= REPOSITORIES.keys()


@pytest.mark.parametrize(
    ("package", "release", "recorded", "expected"),
    [
        ("torch", "2.13.0+cpu", COMMIT, COMMIT),
        ("torch", "1.12.1+cu102", "Unknown", "v1.12.1"),
        ("torch", "0.1.12_2", "", "v0.1.12"),
        ("tensorflow", "1.15.5", "v1.15.4-39-g3db52be", "3db52be"),
        ("theano", "0.8.2", "RELEASE", "rel-0.8.2"),
        ("jaxlib", "0.4.13", "", "jaxlib-v0.4.13"),
        ("keras", "2.4.3", "", "2.4.3"),
        ("keras", "2.10.0", "", "v2.10.0"),
        ("numba", "0.66.0", "", "0.66.0"),
        ("numpy", "2.5.0.dev0", "", ""),
        ("a-package", "1.0", "", ""),
        ("a-package", "1.0", COMMIT, COMMIT),
    ],
)
def test_a_commit_counts_before_a_tag(package: str, release: str, recorded: str, expected: str) -> None:
    assert revision(package, release, recorded) == expected


def test_a_link_names_two_revisions_of_a_repository_that_is_known() -> None:
    link = compare_link("jax", "jax-v0.4.31", COMMIT)
    assert link == "https://github.com/jax-ml/jax/compare/jax-v0.4.31...cf30153c4c"
    assert compare_link("jax", "jax-v0.4.31", "") == ""
    assert compare_link("jax", COMMIT, COMMIT) == ""
    assert compare_link("a-package", "1", "2") == ""
