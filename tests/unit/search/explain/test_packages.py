"""The packages that differ under a framework, by the comments of locks, and the lock of a candidate."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from runner.matrix import Environment
from runner.releases.lock_requests import LockRequest
from runner.search.explain import packages
from runner.search.explain.packages import End, also_changed, day_of, different_packages, make_lock

HASH = f"    --hash=sha256:{'0' * 64}"
HEADER = "# made by `runner lock x` from: jax, Python 3.11, 2026-11-28\n# the packages of 2024-09-10\n"


def lock(path: Path, **versions: str) -> Path:
    """Write a lock whose packages are required as those of jax and optax are."""
    via = {"jax": "(typed for)", "jaxlib": "jax", "numpy": "jax", "ml-dtypes": "jaxlib", "toolz": "chex"}
    via |= {"chex": "optax", "optax": "(typed for)", "scipy": "\n    #   jaxlib\n    #   jax"}
    lines = [f"{name}=={version} \\\n{HASH}\n    # via {via[name]}" for name, version in versions.items()]
    path.write_text(HEADER + "\n".join(lines).replace("via \n", "via\n") + "\n")
    return path


def end(name: str, path: Path | None, *requirements: str) -> End:
    """Return a release of jax."""
    environment = Environment(framework="jax", release="0.4", python="3.11", requirements=requirements or ("jax",))
    return End(name=name, environment=environment, release="0.4", lock=path)


@pytest.fixture
def ends(tmp_path: Path) -> tuple[End, End]:
    old = {"jax": "1", "jaxlib": "1", "numpy": "1.26", "ml-dtypes": "1", "toolz": "1", "chex": "1", "optax": "1"}
    new = old | {"jax": "2", "jaxlib": "2", "numpy": "2.1", "ml-dtypes": "2", "toolz": "2", "chex": "2"}
    good = lock(tmp_path / "good.txt", **old, scipy="1.1")
    bad = lock(tmp_path / "bad.txt", **new, scipy="1.2")
    return end("old", good), end("new", bad)


def test_packages_that_the_framework_requires_are_tried_in_the_version_of_the_other_release(
    ends: tuple[End, End],
) -> None:
    assert different_packages(*ends, "cpu") == {"numpy": "1.26", "ml-dtypes": "1", "scipy": "1.1"}


def test_a_package_that_is_named_in_two_versions_is_tried_with_what_it_requires(ends: tuple[End, End]) -> None:
    good, bad = (replace(of, environment=end("x", None, "jax", "chex==1").environment) for of in ends)
    assert different_packages(good, bad, "cpu").keys() == {"numpy", "ml-dtypes", "scipy", "chex", "toolz"}


def test_an_image_has_no_packages_to_try(ends: tuple[End, End]) -> None:
    assert different_packages(end("image", None), ends[1], "cpu") == {}


def test_what_differs_besides_is_named(ends: tuple[End, End]) -> None:
    assert ends[0].lock is not None
    assert also_changed(("numpy==1.26",), ends[1].lock, ends[0].lock)[:2] == ("jax 1", "jaxlib 1")


def test_the_lock_of_a_candidate_keeps_the_versions_and_the_day_of_the_changed_release(
    ends: tuple[End, End], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[LockRequest] = []
    monkeypatch.setattr(packages, "lock_release", requests.append)
    pins, bad = ("numpy==1.26",), ends[1]
    make_lock("new-numpy", end("x", None, "jax", *pins).environment, pins, "cpu", bad.lock, tmp_path / "out" / "x.txt")
    (request,) = requests
    assert request.requirements == ("jax", "numpy==1.26")
    assert request.exact == pins
    assert request.versions == bad.lock
    assert request.as_of == date(2024, 9, 10) == day_of(bad.lock)
    assert request.out.parent.is_dir()
