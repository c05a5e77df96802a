"""Which revisions the releases of a search were made from."""

from dataclasses import replace

import pytest

from runner.matrix import Environment
from runner.releases.candidates import ReleaseCandidate
from runner.search.bisect.source_changes import revisions_of, source_changes
from runner.search.bisect.state import SearchStep

ENVIRONMENT = Environment(framework="jax", release="0.4.31", python="3.11", requirements=("jax==0.4.31",))
CANDIDATE = ReleaseCandidate(name="jax-0.4.31", release="0.4.31", source="index", environment=ENVIRONMENT)
COMMIT = "7fd93027854e902263dda0e06cab5177af8ec484"
FACTS = {"version": "0.4.31", "jaxlib": "0.4.31", "jaxlib_revision": COMMIT}


@pytest.mark.parametrize("axis", ["release", "nightly"])
def test_a_framework_has_a_commit_or_a_tag_for_itself_and_its_companion(axis: str) -> None:
    assert revisions_of(CANDIDATE, axis, FACTS) == {"jax": "jax-v0.4.31", "jaxlib": COMMIT}
    assert revisions_of(CANDIDATE, axis, {**FACTS, "source_revision": "a" * 40})["jax"] == "a" * 40
    assert revisions_of(CANDIDATE, axis, {}) == {"jax": "jax-v0.4.31"}


def test_a_nightly_build_without_a_commit_has_no_revision() -> None:
    nightly = replace(CANDIDATE, release="0.4.32.dev20240801")
    assert revisions_of(nightly, "nightly", {"version": "0.4.32.dev20240801"}) == {}


@pytest.mark.parametrize(
    ("axis", "expected"), [("numba", {"numba": "0.66.0"}), ("a-package", {}), ("cuda", {}), ("cudnn", {})]
)
def test_of_another_axis_the_source_is_that_of_the_package(axis: str, expected: dict[str, str]) -> None:
    assert revisions_of(replace(CANDIDATE, release="0.66.0"), axis, FACTS) == expected


def test_a_package_that_did_not_change_is_left_out() -> None:
    step = SearchStep(
        base="old",
        other="new",
        outcome="changed",
        base_revisions={"jax": "jax-v0.4.31", "jaxlib": COMMIT},
        revisions={"jax": "jax-v0.4.32", "jaxlib": COMMIT},
    )
    (change,) = source_changes([step], "old", "new")
    assert change.sentence == (
        "changes in the source of JAX, jax-v0.4.31 to jax-v0.4.32: "
        "https://github.com/jax-ml/jax/compare/jax-v0.4.31...jax-v0.4.32"
    )
    assert source_changes([step], "new", "newer") == []
