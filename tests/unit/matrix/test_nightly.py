"""What an environment may follow, and which environments can be the bases of nights."""

import pytest

from runner.core.errors import MatrixError
from runner.matrix import Matrix, parse

HEAD = "version: 1\nworkloads: {rnn-step: {}}\nenvironments:\n"
LOCKED = '{framework: torch, release: "1.13.1", python: "3.10", lock: a.txt, requirements: [torch==1.13.1]}'
FOLLOWS = (
    '{framework: torch, release: "2.*", python: "3.11", lock: b.txt, '
    "requirements: [torch==2.9.0, numpy], follow: FOLLOW}"
)


def matrix(*environments: str, nightly: str = "") -> Matrix:
    text = HEAD + "".join(f"  {each}\n" for each in environments) + (f"nightly: {nightly}\n" if nightly else "")
    return parse(text.encode(), "m.yaml")


def message(*environments: str, nightly: str = "") -> str:
    with pytest.raises(MatrixError) as caught:
        matrix(*environments, nightly=nightly)
    return str(caught.value)


@pytest.mark.parametrize("follow", ["torch", "torch>=2,<3", "Torch[extra]>=2"])
def test_an_environment_follows_a_package_of_its_requirements(follow: str) -> None:
    text = f"torch-2.x: {FOLLOWS.replace('FOLLOW', repr(follow))}"
    assert matrix(text).environments["torch-2.x"].follow == follow


def test_a_variant_follows_a_package_of_its_own_requirements() -> None:
    variant = "{lock: a.txt, requirements: [tensorflow-cpu==2.21.0], follow: 'tensorflow_cpu<3'}"
    text = f'tf-2.x: {{framework: tensorflow, release: "2.*", python: "3.11", variants: {{cpu: {variant}}}}}'
    (followed,) = matrix(text).environments["tf-2.x"].all_variants().values()
    assert followed.follow == "tensorflow_cpu<3"
    refused = message(text.replace("tensorflow_cpu<3", "tensorflow<3"))
    assert "in the variant cpu follows tensorflow, which is not in its requirements" in refused


def test_what_cannot_be_followed_is_refused_with_its_place() -> None:
    refused = message(f"torch-2.x: {FOLLOWS.replace('FOLLOW', 'jax')}")
    assert "m.yaml:4:" in refused
    assert "torch-2.x follows jax, which is not in its requirements" in refused
    image = 'torch-2.x: {framework: torch, release: "2.*", image: x, follow: torch}'
    assert "an image is pulled as it is" in message(image)
    assert "not a requirement" in message(f"torch-2.x: {FOLLOWS.replace('FOLLOW', repr('torch>>2'))}")


@pytest.mark.parametrize("nightly", ["{base: torch-1.13}", "{base: [torch-1.13]}"])
def test_a_base_is_one_environment_or_a_list(nightly: str) -> None:
    assert matrix(f"torch-1.13: {LOCKED}", nightly=nightly).nightly.base == ("torch-1.13",)
    assert matrix(f"torch-1.13: {LOCKED}").nightly.base == ()


@pytest.mark.parametrize(
    ("nightly", "problem"),
    [
        ("{base: torch-1.31}", "did you mean 'torch-1.13'?"),
        ("{base: torch-2.x}", "torch-2.x follows a package, and a base stays the same"),
        ("{base: np}", "np has no lock, and a base stays the same"),
        ("{base: [torch-1.13, torch-1.12]}", "torch-1.13 and torch-1.12 are both bases of torch"),
        ("{bases: torch-1.13}", "did you mean 'base'?"),
    ],
)
def test_a_base_stays_the_same_from_night_to_night(nightly: str, problem: str) -> None:
    environments = (
        f"torch-1.13: {LOCKED}",
        f"torch-1.12: {LOCKED}",
        f"torch-2.x: {FOLLOWS.replace('FOLLOW', 'torch')}",
        'np: {framework: numpy, release: "2.0", python: "3.11", requirements: [numpy]}',
    )
    refused = message(*environments, nightly=nightly)
    assert problem in refused
    assert "m.yaml:8:" in refused
