"""What the candidates of a bisect are expected to download."""

from dataclasses import replace

from packaging.requirements import Requirement

from runner.matrix import parse
from runner.releases.candidates import ReleaseCandidate, made_from
from runner.search.bisect.forecast import download_of

MATRIX = parse(
    b"""\
version: 1
workloads: {rnn-step: {}}
environments:
  torch-1.12:
    framework: torch
    release: "1.12.1"
    python: "3.10"
    variants:
      cpu: {requirements: [torch==1.12.1], download_bytes: 800}
  torch-2.4:
    framework: torch
    release: "2.4.1"
    python: "3.11"
    variants:
      cuda-11.8: {image: "pytorch:2.4.1", cuda: "11.8", download_bytes: 5}
      cuda-12.1: {requirements: [torch==2.4.1], cuda: "12.1", download_bytes: 2800}
  torch-2.x:
    framework: torch
    release: "2.*"
    python: "3.11"
    variants:
      cpu: {requirements: [torch==2.13.0+cpu], index: "https://example.org/cpu", download_bytes: 200}
""",
    "matrix.yaml",
)


def made(version: str, template: str) -> ReleaseCandidate:
    environment = MATRIX.environments[template]
    of_matrix = ReleaseCandidate(name=template, release=environment.release, source="matrix", environment=environment)
    return made_from(of_matrix, Requirement("torch"), version, "cpu")


def test_a_release_of_the_index_is_as_large_as_the_nearest_of_the_matrix() -> None:
    sizes = {
        version: download_of(made(version, "torch-1.12"), MATRIX, "cpu") for version in ("1.13.0", "2.3.0", "2.9.0")
    }
    assert sizes == {"1.13.0": 2800, "2.3.0": 2800, "2.9.0": 2800}  # of two that are as near, the larger
    assert download_of(made("1.11.0", "torch-1.12"), MATRIX, "cpu") == 800
    assert download_of(made("2.9.0", "torch-2.x"), MATRIX, "cpu") == 200


def test_an_environment_of_the_matrix_has_its_own_size() -> None:
    candidate = replace(made("1.13.0", "torch-1.12"), source="matrix", environment=MATRIX.environments["torch-1.12"])
    assert download_of(candidate, MATRIX, "cpu") == 800
    assert download_of(candidate, MATRIX, "cuda") == 0
