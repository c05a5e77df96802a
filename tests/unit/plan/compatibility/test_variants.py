"""Of several CUDA variants the plan takes the newest that the GPU and its driver run."""

import re

import pytest

from runner.core.errors import MatrixError
from runner.core.model import Gpu
from runner.matrix import Matrix, parse
from runner.plan.compatibility.variants import choose_variants

TEXT = """
version: 1
workloads: {}
environments:
  torch-2.x:
    framework: torch
    release: "2.13.0"
    python: "3.11"
    variants:
      cpu: {lock: cpu.txt, requirements: [torch]}
      cuda-12.6: {image: an/image, cuda: "12.6", cudnn: "9.10"}
      cuda-13.0: {lock: cuda.txt, requirements: [torch], cuda: "13.0", cudnn: "9.20"}
"""
CAPABILITIES = {"GTX 1080": (6, 1), "V100": (7, 0), "A100": (8, 0), "H200": (9, 0), "RTX 5090": (12, 0)}


def matrix(text: str = TEXT) -> Matrix:
    return parse(text.encode(), "m.yaml")


def gpu(name: str, driver: str) -> Gpu:
    return Gpu(uuid="GPU-1", name=name, capability=CAPABILITIES[name], driver=driver)


@pytest.mark.parametrize(
    ("name", "driver", "cuda"),
    [
        ("H200", "595.71.05", "13.0"),
        ("H200", "550.54.15", "12.6"),  # CUDA 13 needs driver 580
        ("A100", "535.261.03", "12.6"),
        ("V100", "580.95.05", "12.6"),  # CUDA 13 has no code for it
        ("GTX 1080", "580.95.05", "12.6"),
        ("RTX 5090", "595.71.05", "13.0"),
        ("RTX 5090", "570.26", "13.0"),  # neither runs: the newest says why
    ],
)
def test_the_newest_variant_that_runs_is_taken(name: str, driver: str, cuda: str) -> None:
    chosen, reasons = choose_variants(matrix(), gpu(name, driver))
    variant = chosen.environments["torch-2.x"].variant("cuda")
    assert variant is not None
    assert variant.cuda == cuda
    assert list(chosen.environments["torch-2.x"].variants) == ["cpu", f"cuda-{cuda}"]
    assert set(reasons) == ({"torch-2.x"} if cuda == "12.6" else set())


def test_the_reason_names_both_builds_and_why() -> None:
    _, reasons = choose_variants(matrix(), gpu("H200", "550.54.15"))
    assert reasons["torch-2.x"].startswith("torch-2.x: the build with CUDA 12.6, not 13.0: ")
    assert re.search(r"driver 580\.65\.06 or newer; the driver is 550\.54\.15", reasons["torch-2.x"])


def test_a_venv_holds_no_image() -> None:
    chosen, reasons = choose_variants(matrix(), gpu("H200", "550.54.15"), "venv")
    variant = chosen.environments["torch-2.x"].variant("cuda")
    assert variant is not None
    assert (variant.cuda, reasons) == ("13.0", {})


def test_an_environment_with_a_single_variant_is_left_as_it_is() -> None:
    single = matrix(TEXT.replace("      cuda-12.6: {image: an/image", "      # {"))
    chosen, reasons = choose_variants(single, gpu("H200", "550.54.15"))
    assert chosen.environments["torch-2.x"] is single.environments["torch-2.x"]
    assert reasons == {}


def test_a_variant_is_named_after_its_cuda() -> None:
    with pytest.raises(MatrixError) as caught:
        matrix(TEXT.replace('cuda: "12.6"', 'cuda: "12.4"'))
    assert "the variant cuda-12.6, whose CUDA is 12.4" in str(caught.value)
    assert 'cuda: "12.6"' in str(caught.value)


def test_all_variants_are_built_from_and_one_serves_a_device() -> None:
    environment = matrix().environments["torch-2.x"]
    assert list(environment.all_variants()) == ["cpu", "cuda-13.0", "cuda-12.6"]
    newest = environment.variant("cuda")
    assert newest is not None
    assert newest.cuda == "13.0"
