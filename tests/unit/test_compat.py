"""Releases as numbers, and CUDA builds against GPUs and drivers, with the shipped matrix."""

import functools
import itertools
import math
import random
from pathlib import Path

import pytest

from runner import compat
from runner.matrix import Environment, Matrix, load
from runner.model import Gpu, Skip

NEW = "580.65.06"
CAPABILITIES = {
    "GTX TITAN X (Maxwell)": (5, 2),
    "GTX 1080": (6, 1),
    "P100": (6, 0),
    "V100": (7, 0),
    "T4": (7, 5),
    "A100": (8, 0),
    "RTX 3090": (8, 6),
    "L4": (8, 9),
    "H200": (9, 0),
    "B200": (10, 0),
    "RTX 5090": (12, 0),
}


@functools.cache
def matrix() -> Matrix:
    return load(Path(__file__).parents[2] / "matrix.yaml")


def gpu(name: str, driver: str = NEW) -> Gpu:
    return Gpu(uuid="GPU-1", name=name, capability=CAPABILITIES[name], driver=driver)


def refused(environment: str, name: str, driver: str = NEW) -> Skip | None:
    return compat.refuse(matrix().environments[environment], gpu(name, driver))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1.12.1", (1, 12, 1)),
        ("2.*", (2, math.inf)),
        ("0.1.12_2", (0, 1, 12, 2)),
        ("0.3.1.post2", (0, 3, 1, 2)),
        ("2.13.0+cpu", (2, 13, 0)),
    ],
)
def test_a_release_is_read_as_numbers(text: str, numbers: tuple[float, ...]) -> None:
    assert compat.release(text) == numbers


def test_releases_are_ordered_by_number_and_a_floating_one_is_newest() -> None:
    order = [
        "0.1.12",
        "0.1.12_2",
        "0.3.1",
        "0.3.1.post2",
        "0.4.0",
        "1.0.0",
        "1.8.0",
        "1.12.1",
        "1.15.5",
        "2.13.0",
        "2.*",
    ]
    shuffled = random.Random(1).sample(order, len(order))
    assert sorted(shuffled, key=compat.release) == order
    assert compat.release("2.*") < compat.release("3.0")


# What each CUDA build of the shipped matrix runs on: native code, never PTX alone; worked out from the wheels by hand.
PASCAL, VOLTA = {"GTX 1080", "P100"}, {"V100"}
RUNS = {
    "torch-0.1": {"GTX TITAN X (Maxwell)", *PASCAL},
    "torch-0.2": {"GTX TITAN X (Maxwell)", *PASCAL},
    "torch-0.3": {"GTX TITAN X (Maxwell)", *PASCAL, *VOLTA, "T4"},
    "torch-0.4": {"GTX TITAN X (Maxwell)", *PASCAL, *VOLTA, "T4"},
    "torch-1.0": {"GTX TITAN X (Maxwell)", *PASCAL, *VOLTA, "T4"},
    "torch-1.12": {"GTX TITAN X (Maxwell)", *PASCAL, *VOLTA, "T4"},
    "torch-2.x": {"T4", "A100", "RTX 3090", "L4", "H200", "B200", "RTX 5090"},
    "tf-1.8": {"GTX TITAN X (Maxwell)", *PASCAL, *VOLTA, "T4"},
    "tf-1.15": {"GTX TITAN X (Maxwell)", *PASCAL, *VOLTA, "T4"},
    "tf-2.x": {*PASCAL, *VOLTA, "T4", "A100", "RTX 3090", "L4", "H200"},
    "tf-0.8": {"GTX TITAN X (Maxwell)"},
    "keras-3": {*PASCAL, *VOLTA, "T4", "A100", "RTX 3090", "L4", "H200"},
    "theano-cudnn": {"GTX TITAN X (Maxwell)", *PASCAL, *VOLTA, "T4"},
    "torch7": {"GTX TITAN X (Maxwell)", *PASCAL},
    "jax": set(CAPABILITIES),
}


def test_every_environment_of_the_matrix_has_its_row_here() -> None:
    declared = {name for name, found in matrix().environments.items() if found.variant("cuda") is not None}
    assert set(RUNS) == declared


@pytest.mark.parametrize(("environment", "name"), list(itertools.product(RUNS, CAPABILITIES)))
def test_a_build_runs_where_it_has_native_code(environment: str, name: str) -> None:
    found = refused(environment, name)
    assert (found is None) == (name in RUNS[environment]), found
    assert found is None or found.code == "arch"


def test_the_reason_names_the_build_the_gpu_and_the_newest_code() -> None:
    assert refused("torch-1.0", "H200") == Skip(
        "arch",
        "the CUDA 9.0 build of torch 1.0.0 has no code for H200 (compute capability 9.0); its newest is 7.0",
    )


def test_a_driver_that_is_too_old_is_told_before_the_architecture() -> None:
    assert refused("torch-2.x", "H200", "570.86.15") == Skip(
        "driver", "CUDA 13.0 needs driver 580 or newer, this machine has 570.86.15"
    )
    assert (refused("torch-2.x", "GTX 1080", "570.86.15") or Skip("", "")).code == "driver"


@pytest.mark.parametrize(
    ("environment", "old", "new"),
    [
        ("torch-0.1", "375.20", "375.26"),
        ("torch-1.0", "384.69", "384.81"),
        ("torch-1.0", "384.69", "384.130"),  # 130 comes after 81
        ("tf-1.15", "410.47", "410.104"),
        ("torch-1.12", "440.31", "440.100"),
        ("tf-2.x", "525.53", "525.60.13"),
        ("tf-2.x", "470.199.02", "525.147.05"),
        ("torch-2.x", "575.57.08", "580.65.06"),
    ],
)
def test_drivers_are_compared_part_by_part(environment: str, old: str, new: str) -> None:
    on = "T4" if environment == "torch-2.x" else "GTX 1080"
    assert (refused(environment, on, old) or Skip("", "")).code == "driver"
    assert refused(environment, on, new) is None


def made(cuda: str | None, framework: str = "torch") -> Environment:
    own = {"cuda": cuda} if cuda else {}
    return Environment.model_validate({"framework": framework, "release": "1.0", "image": "x", **own})


def test_a_build_without_cuda_needs_the_cpu() -> None:
    found = compat.refuse(made(None), gpu("T4"))
    assert found is not None
    assert found.code == "needs-gpu"


def test_a_variant_for_cpus_alone_needs_the_cpu() -> None:
    text = {"framework": "torch", "release": "1.0", "python": "3.6", "variants": {"cpu": {"requirements": ["torch"]}}}
    found = compat.refuse(Environment.model_validate(text), gpu("T4"))
    assert found is not None
    assert found.code == "needs-gpu"


def test_a_build_that_is_not_in_the_table_is_tried() -> None:
    assert compat.refuse(made("11.8"), gpu("H200")) is None
    assert compat.refuse(made("9.0", "numpy"), gpu("H200")) is None


def test_minor_releases_of_cuda_share_the_driver_of_their_major_one() -> None:
    assert compat.refuse(made("12.9"), gpu("H200", "525.60.13")) is None
    assert (compat.refuse(made("11.8"), gpu("H200", "440.33")) or Skip("", "")).code == "driver"


def test_every_cuda_of_the_matrix_is_in_both_tables() -> None:
    for name, environment in matrix().environments.items():
        variant = environment.variant("cuda")
        if variant is None:
            continue
        assert variant.cuda is not None, name
        assert (environment.framework, variant.cuda) in compat.NATIVE, name
        assert variant.cuda in compat.DRIVERS or variant.cuda.split(".")[0] in compat.DRIVERS, name
