"""Environments that differ in one package: what they require, keep and are called."""

from pathlib import Path

from runner.matrix import parse
from runner.releases.candidates import ReleaseCandidate, exact_release, lock_request_of
from runner.releases.package_versions import lock_of, with_package

MATRIX = b"""\
version: 1
environments:
  torch-1.12:
    framework: torch
    release: "1.12.1"
    python: "3.10"
    variants:
      cpu: {requirements: ["numpy<2", torch==1.12.1]}
      cuda-11.3: {requirements: [torch==1.12.1], cuda: "11.3"}
  jax: {framework: jax, release: "0.*", python: "3.11", lock: jax.txt, requirements: [optax, jax]}
  jax-open: {framework: jax, release: "*", python: "3.11", requirements: [jax]}
workloads: {rnn-step: {cases: [lstm-b32-h128]}}
"""


def with_version(name: str, package: str, version: str, folder: Path) -> ReleaseCandidate:
    (folder / "jax.txt").write_text(f"jax==0.4.36 --hash=sha256:{'ab' * 32}\n")
    environment = parse(MATRIX, "matrix.yaml").environments[name]
    release = exact_release(environment, "cpu", folder)
    template = ReleaseCandidate(name=name, release=release, source="matrix", environment=environment)
    return with_package(template, package, version, "cpu", lock_of(template, "cpu", folder, {}))


def requirements(candidate: ReleaseCandidate) -> tuple[str, ...]:
    variant = candidate.environment.variant("cpu")
    assert variant is not None
    assert variant.lock is None
    return variant.requirements


def test_the_framework_stays_and_the_package_replaces_its_requirement(tmp_path: Path) -> None:
    candidate = with_version("torch-1.12", "NumPy", "1.26.4", tmp_path)
    assert requirements(candidate) == ("torch==1.12.1", "NumPy==1.26.4")
    assert (candidate.name, candidate.release) == ("torch-1.12-numpy-1.26.4", "1.26.4")
    assert (candidate.environment.release, candidate.template) == ("1.12.1", "torch-1.12")
    assert set(candidate.environment.variants) == {"cpu"}


def test_a_floating_framework_has_the_release_of_its_lock_and_the_rest_keeps_its_versions(tmp_path: Path) -> None:
    candidate = with_version("jax", "numpy", "2.2.6", tmp_path)
    assert requirements(candidate) == ("jax==0.4.36", "optax", "numpy==2.2.6")
    request = lock_request_of(candidate, "cpu", tmp_path / "out.txt")
    assert request.versions == tmp_path / "jax.txt"
    assert request.exact == ("numpy==2.2.6",)  # it counts also where another package requires another version


def test_a_lock_beside_the_matrix_counts(tmp_path: Path) -> None:
    kept, environment = tmp_path / "kept.txt", parse(MATRIX, "matrix.yaml").environments["jax-open"]
    template = ReleaseCandidate(name="jax-open", release="*", source="matrix", environment=environment)
    assert lock_of(template, "cpu", tmp_path, {"jax-open": kept}) == kept


def test_a_release_that_nothing_tells_stays_open(tmp_path: Path) -> None:
    candidate = with_version("jax-open", "numpy", "2.2.6", tmp_path)
    assert requirements(candidate) == ("jax", "numpy==2.2.6")
    assert lock_request_of(candidate, "cpu", tmp_path / "out.txt").versions is None
