"""The builds of environments for x86_64 and for aarch64."""

from pathlib import Path

import pytest

from runner.core.errors import MatrixError
from runner.core.model import Device
from runner.matrix import Matrix, load, parse
from runner.plan.specs import specs

ROOT = Path(__file__).parents[3]
MATRIX = """\
version: 1
environments:
  np: {framework: numpy, release: "2.3.0", python: "3.11", requirements: [numpy==2.3.0], lock: np.txt}
  torch: {framework: torch, release: "1.0.0", python: "3.6", requirements: [torch==1.0.0], lock: t.txt, cuda: "9.0"}
  page: {framework: torch, release: "0.3.1", python: "3.6", requirements: [torch==0.3.1], find_links: "https://a.test/w"}
  image: {framework: torch, release: "0.4.0", image: "a/torch:0.4"}
  other-image:
    framework: torch
    release: "2.0.0"
    image: "a/torch:2.0"
    aarch64: {image: "a/torch-arm:2.0"}
  tf:
    framework: tensorflow
    release: "2.21.0"
    python: "3.11"
    variants:
      cpu:
        base: python:3.11
        requirements: [tensorflow-cpu==2.21.0]
        lock: tf.txt
        follow: tensorflow-cpu>=2
        index: "https://a.test/cpu"
        aarch64: {requirements: [tensorflow==2.21.0], lock: tf-aarch64.txt}
      cuda: {requirements: [tensorflow==2.21.0], cuda: "12.5"}
  tf-more: {extends: tf, add: [six]}
  cudnn: {framework: theano, release: "1.0.1", variants: {cuda: {image: "a/theano:1"}}, python: "3.6"}
workloads: {rnn-step: {}}
"""


@pytest.fixture
def aarch64() -> Matrix:
    return parse(MATRIX.encode(), "matrix.yaml").for_architecture("aarch64")


def test_a_build_has_the_keys_for_its_architecture_and_the_base_of_the_other(aarch64: Matrix) -> None:
    tf = aarch64.environments["tf"].variant("cpu")
    assert tf is not None
    assert (tf.requirements, tf.lock) == (("tensorflow==2.21.0",), "tf-aarch64.txt")
    assert (tf.base, tf.index, tf.follow) == ("python:3.11", None, None)
    image = aarch64.environments["other-image"].variant("cuda")
    assert image is not None
    assert (image.image, image.base) == ("a/torch-arm:2.0", None)


def test_without_keys_for_it_the_requirements_have_no_lock_and_no_cuda(aarch64: Matrix) -> None:
    for name, requirement in {"np": "numpy==2.3.0", "torch": "torch==1.0.0"}.items():
        variant = aarch64.environments[name].variant("cpu")
        assert variant is not None
        assert variant.is_locked_when_named
        assert (variant.requirements, variant.lock, variant.cuda) == ((requirement,), None, None)


@pytest.mark.parametrize(
    ("name", "devices"),
    [
        ("np", {"cpu", "cuda"}),
        ("torch", {"cpu"}),
        ("page", set()),
        ("image", set()),
        ("other-image", {"cpu", "cuda"}),
        ("tf", {"cpu"}),
        ("tf-more", {"cpu"}),
        ("cudnn", set()),
    ],
)
def test_images_pages_and_cuda_are_for_x86_64_alone(name: str, devices: set[Device], aarch64: Matrix) -> None:
    environment = aarch64.environments[name]
    both: tuple[Device, ...] = ("cpu", "cuda")
    assert {device for device in both if environment.variant(device)} == devices
    on_x86_64 = parse(MATRIX.encode(), "matrix.yaml").environments[name]
    assert environment.of_x86_64 == {device for device in both if on_x86_64.variant(device)} - devices
    assert environment.architecture == "aarch64"


def test_the_plan_says_that_a_build_is_for_x86_64_alone(aarch64: Matrix, tmp_path: Path) -> None:
    _, skips = specs(aarch64, ["image", "cudnn", "np"], "cpu", tmp_path)
    assert skips["image"].reason.startswith("its build for cpu exists only for x86_64, and the machine is aarch64: ")
    assert skips["cudnn"].reason == "matrix.yaml has no variant for cpu"
    assert "np" not in skips


def test_an_environment_that_adds_packages_adds_them_on_both_architectures(aarch64: Matrix) -> None:
    more = aarch64.environments["tf-more"].variant("cpu")
    assert more is not None
    assert (more.requirements, more.lock) == (("tensorflow==2.21.0", "six"), "tf-more-cpu-aarch64.txt")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{image: a, lock: b.txt}", "has both an image and a lock"),
        ("{cudnn: '9.0'}", "does not say what to install"),
        ("{requirements: [numpy], follow: jax}", "follows jax"),
        ("{requirements: [numpy], python: '3.6'}", "unknown key 'python'"),
        ("{requirements: [numpy], lock: ../b.txt}", "lock"),
        ("7", "aarch64 must be a mapping"),
    ],
)
@pytest.mark.parametrize("in_variant", [False, True])
def test_mistakes_in_a_build_for_aarch64_are_found(written: str, message: str, *, in_variant: bool) -> None:
    build = f"requirements: [numpy], aarch64: {written}"
    build = f"variants: {{cpu: {{{build}}}}}" if in_variant else build
    text = f'{{a: {{framework: numpy, release: "1", python: "3.11", {build}}}}}'
    with pytest.raises(MatrixError, match=message):
        parse(f"version: 1\nenvironments: {text}\nworkloads: {{rnn-step: {{}}}}\n".encode(), "m.yaml", Path("/nowhere"))


def test_the_shipped_matrix_has_a_build_of_the_newest_releases_for_aarch64() -> None:
    shipped = load(ROOT / "matrix.yaml", networks=False, architecture="aarch64")
    for name in ("tf-2.x", "keras-3", "jax"):
        variant = shipped.environments[name].variant("cpu")
        assert variant is not None
        assert variant.lock
        assert (ROOT / variant.lock).is_file()


@pytest.mark.parametrize("build", ["{lock: tf-arm.txt}", '{image: "a/tf-arm:2.0"}'])
def test_packages_are_not_added_to_a_build_without_requirements(build: str) -> None:
    """On either architecture, and with a message that has a place."""
    text = MATRIX.replace("{requirements: [tensorflow==2.21.0], lock: tf-aarch64.txt}", build)
    with pytest.raises(MatrixError, match=r"tf-more extends tf \(cpu aarch64\), which has no requirements"):
        parse(text.encode(), "matrix.yaml")


def test_a_package_that_aarch64_requires_is_not_added_twice() -> None:
    text = MATRIX.replace("add: [six]", "add: [tensorflow]")
    text = text.replace("cuda: {requirements: [tensorflow==2.21.0], cuda", 'cuda: {image: "a/tf:2", cuda')
    with pytest.raises(MatrixError, match=r"tensorflow==2\.21\.0"):
        parse(text.encode(), "matrix.yaml")
