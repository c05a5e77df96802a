"""Releases as numbers, the shipped environments on GPUs and drivers, and what would run where one cannot."""

import functools
import itertools
import math
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from runner.catalog.hardware.builds import builds as known_builds
from runner.catalog.hardware.versions import version_numbers
from runner.core.model import Gpu, Request, Skip
from runner.matrix import Environment, Matrix, load, parse
from runner.plan import compatibility
from runner.plan.compatibility import Judgement
from runner.plan.compatibility.builds import build_of

ROOT = Path(__file__).parents[3]
NEW = "580.95.05"
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
    return load(ROOT / "matrix.yaml")


def gpu(name: str, driver: str = NEW) -> Gpu:
    return Gpu(uuid="GPU-1", name=name, capability=CAPABILITIES[name], driver=driver)


def judged(environment: str, name: str, driver: str = NEW) -> Judgement:
    return compatibility.judge(matrix().environments[environment], gpu(name, driver))


def made(cuda: str | None, framework: str = "torch", release: str = "1.0.0", **keys: object) -> Environment:
    cuda_keys = {"cuda": cuda} if cuda else {}
    text = {"framework": framework, "release": release, **cuda_keys, **keys}
    return Environment.model_validate(text if "python" in text else {"image": "x", **text})


def nearest(environment: str, name: str, driver: str = NEW, lost: tuple[str, ...] = ()) -> tuple[str, ...]:
    request = Request(environments=tuple(matrix().environments), backend="docker")
    return compatibility.judgements(matrix(), request, gpu(name, driver), lost)[environment].nearest


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1.12.1", (1, 12, 1)),
        ("2.*", (2, math.inf)),
        ("0.1.12_2", (0, 1, 12, 2)),
        ("0.3.1.post2", (0, 3, 1, 2)),
        ("2.13.0+cpu", (2, 13, 0)),
        ("2.14.1+cu126", (2, 14, 1)),
    ],
)
def test_a_release_is_read_as_numbers(text: str, numbers: tuple[float, ...]) -> None:
    assert version_numbers(text) == numbers


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
    assert sorted(shuffled, key=version_numbers) == order
    assert version_numbers("2.*") < version_numbers("3.0")


# The build that each environment of the shipped matrix is known as, and what it does with a driver of branch 580;
# worked out by hand from what the wheels hold: native code, else PTX alone, else nothing.
BUILDS = {
    "torch-0.1": ("torch", "0.1.12.post2", "cu80"),
    "torch-0.2": ("torch", "0.2.0_4", "cu80"),
    "torch-0.3": ("torch", "0.3.1", "cu90"),
    "torch-0.4": ("torch", "0.4.0", "cu90"),
    "torch-1.0": ("torch", "1.0.0", "cu90"),
    "torch-1.13": ("torch", "1.13.1", "cu117"),
    "torch-2.1": ("torch", "2.1.2", "cu121"),
    "torch-2.4": ("torch", "2.4.1", "cu121"),
    "torch-2.6": ("torch", "2.6.0", "cu124"),
    "torch-2.8": ("torch", "2.8.0", "cu128"),
    "torch-2.10": ("torch", "2.10.0", "cu128"),
    "torch-2.11": ("torch", "2.11.0", "cu130"),
    "torch-2.x": ("torch", "2.13.0", "cu130"),
    "tf-0.8": ("tensorflow-gpu", "0.8.0", "gpu"),
    "tf-1.8": ("tensorflow-gpu", "1.8.0", "gpu"),
    "tf-1.15": ("tensorflow-gpu", "1.15.5", "gpu"),
    "tf-2.15": ("tensorflow", "2.15.1", "gpu"),
    "tf-2.16": ("tensorflow", "2.16.2", "gpu"),
    "tf-2.17": ("tensorflow", "2.17.1", "gpu"),
    "tf-2.18": ("tensorflow", "2.18.0", "gpu"),
    "tf-2.x": ("tensorflow", "2.21.0", "gpu"),
    "keras-3": ("tensorflow", "2.21.0", "gpu"),
    "theano-cudnn": ("theano", "1.0.1", "gpuarray"),
    "jax-0.4": ("jax", "0.4.38", "cuda12"),
    "jax": ("jax", "0.10.2", "cuda12"),
    "torch7": ("torch7", "7", "image"),
}
OLD, PASCAL, VOLTA = {"GTX TITAN X (Maxwell)"}, {"GTX 1080", "P100"}, {"V100"}
AMPERE, HOPPER, BLACKWELL = {"A100", "RTX 3090", "L4"}, {"H200"}, {"B200", "RTX 5090"}
UP_TO_TURING = {*OLD, *PASCAL, *VOLTA, "T4"}
PASCAL_TO_AMPERE = {*PASCAL, *VOLTA, "T4", *AMPERE}
NATIVE = {
    "torch-0.1": {*OLD, *PASCAL},
    "torch-0.2": {*OLD, *PASCAL},
    "torch-0.3": UP_TO_TURING,
    "torch-0.4": UP_TO_TURING,
    "torch-1.0": UP_TO_TURING,
    "torch-1.13": {*UP_TO_TURING, *AMPERE},
    "torch-2.1": {*UP_TO_TURING, *AMPERE, *HOPPER},
    "torch-2.4": {*UP_TO_TURING, *AMPERE, *HOPPER},
    "torch-2.6": {*UP_TO_TURING, *AMPERE, *HOPPER},
    "torch-2.8": {*VOLTA, "T4", *AMPERE, *HOPPER, *BLACKWELL},
    "torch-2.10": {*VOLTA, "T4", *AMPERE, *HOPPER, *BLACKWELL},
    "torch-2.11": {"T4", *AMPERE, *HOPPER, *BLACKWELL},
    "torch-2.x": {"T4", *AMPERE, *HOPPER, *BLACKWELL},
    "tf-0.8": OLD,
    "tf-1.8": UP_TO_TURING,
    "tf-1.15": UP_TO_TURING,
    "tf-2.15": UP_TO_TURING,
    "tf-2.16": {*OLD, *PASCAL_TO_AMPERE},
    "tf-2.17": {*OLD, *PASCAL_TO_AMPERE},
    "tf-2.18": PASCAL_TO_AMPERE,
    "tf-2.x": PASCAL_TO_AMPERE,
    "keras-3": PASCAL_TO_AMPERE,
    "theano-cudnn": UP_TO_TURING,
    "jax-0.4": {*UP_TO_TURING, *AMPERE, *HOPPER},
    "jax": set(CAPABILITIES),
    "torch7": {*OLD, *PASCAL},
}
NO_PTX = {"theano-cudnn", "torch7"} | {
    *("torch-1.13", "torch-2.1", "torch-2.4", "torch-2.6", "torch-2.8", "torch-2.10", "torch-2.11", "torch-2.x")
}
BELOW_PTX = {(name, "GTX TITAN X (Maxwell)") for name in ("tf-2.18", "tf-2.x", "keras-3")}
BROKEN_PTX = {("tf-2.16", name) for name in BLACKWELL}  # CUDA_ERROR_INVALID_PTX was reported


def test_every_environment_with_a_cuda_build_has_its_row_here() -> None:
    declared = {name for name, environment in matrix().environments.items() if environment.variant("cuda") is not None}
    assert set(NATIVE) == set(BUILDS) == declared


@pytest.mark.parametrize("name", list(BUILDS))
def test_an_environment_is_known_as_its_build(name: str) -> None:
    environment = matrix().environments[name]
    variant = environment.variant("cuda")
    assert variant is not None
    build = build_of(environment, variant)
    assert build is not None
    assert (build.package, build.release, build.variant) == BUILDS[name]


@pytest.mark.parametrize(("environment", "name"), list(itertools.product(NATIVE, CAPABILITIES)))
def test_a_build_runs_by_its_native_code_else_by_its_ptx(environment: str, name: str) -> None:
    verdict = judged(environment, name).verdict
    by_jit = environment not in NO_PTX and (environment, name) not in BELOW_PTX | BROKEN_PTX
    expected = "runs" if name in NATIVE[environment] else "jit" if by_jit else "cannot"
    assert verdict.outcome == expected, verdict
    assert verdict.code == ("arch" if expected == "cannot" else "")
    assert bool(verdict.reason) == bool(verdict.source) == (expected != "runs")


def test_the_cudnn_of_the_matrix_is_that_of_its_lock() -> None:
    seen = 0
    for name, environment in matrix().environments.items():
        variant = environment.variant("cuda")
        text = (ROOT / variant.lock).read_text() if variant and variant.lock else ""
        locked = re.search(r"^nvidia-cudnn-cu\d+==(\d+\.\d+)", text, re.MULTILINE)
        if locked and variant:
            assert variant.cudnn == locked[1], name
            seen += 1
    assert seen >= 4


def test_the_reason_names_the_build_the_gpu_and_the_code_it_has() -> None:
    assert judged("torch-1.13", "H200").verdict.reason == (
        "torch 1.13.1 for CUDA 11.7 has no code for H200 (compute capability 9.0); its newest is 8.6"
    )
    assert judged("torch-2.x", "V100").verdict.reason == (
        "torch 2.13.0 for CUDA 13.0 has no code for V100 (compute capability 7.0); its oldest is 7.5"
    )
    assert judged("torch-1.0", "H200").verdict.reason == (
        "torch 1.0.0 for CUDA 9.0 has no code made for H200 (compute capability 9.0), only PTX 5.0"
    )
    assert judged("tf-2.x", "RTX 5090").verdict.reason.endswith(
        "only PTX 9.0, which is not known to run there (unverified)"
    )
    assert judged("tf-2.16", "RTX 5090").verdict.reason.endswith("CUDA_ERROR_INVALID_PTX was reported")
    assert judged("tf-2.16", "H200").verdict.reason.endswith("only PTX 9.0")  # nobody reported it there


def test_jit_is_refused_unless_it_is_allowed() -> None:
    judgement = judged("torch-1.0", "H200")
    refused = judgement.skip(uses_cudnn=False, allow_jit=False)
    assert refused is not None
    assert refused.code == "arch"
    assert refused.reason == (
        f"{judgement.verdict.reason}; to run it by PTX JIT, with a slow first call, pass --allow-jit"
    )
    assert refused.source == judgement.verdict.source
    assert judgement.skip(uses_cudnn=False, allow_jit=True) is None
    assert judgement.jit(uses_cudnn=False) == f"runs by PTX JIT (first call is slow): {judgement.verdict.reason}"
    assert judged("torch-1.0", "V100").jit(uses_cudnn=False) == ""
    assert judged("torch-1.13", "H200").skip(uses_cudnn=False, allow_jit=True) is not None


def test_the_plan_says_that_an_old_cudnn_will_fail_after_the_jit() -> None:
    on_ampere = judged("torch-1.0", "A100")
    warning = "; convolutions and recurrent layers of cuDNN 7.4 will probably fail, even after the JIT"
    assert warning in on_ampere.jit(uses_cudnn=True)
    assert on_ampere.jit(uses_cudnn=True).endswith("it has no PTX (unverified)")
    assert warning not in on_ampere.jit(uses_cudnn=False)
    assert on_ampere.skip(uses_cudnn=True, allow_jit=True) is None  # it is tried all the same
    assert "cuDNN" not in judged("torch-1.0", "T4").jit(uses_cudnn=True)  # native code of 7.0
    assert "cuDNN" not in judged("tf-2.x", "H200").jit(uses_cudnn=True)


def test_ptx_that_was_made_for_just_this_gpu_needs_no_leave() -> None:
    judgement = judged("tf-2.x", "H200")
    assert (judgement.verdict.outcome, judgement.skip(uses_cudnn=False, allow_jit=False)) == ("jit", None)
    sentence = judgement.jit(uses_cudnn=False)
    assert sentence.startswith("runs by PTX JIT (first call is slow): tensorflow 2.21.0 for CUDA 12.5")
    assert judged("tf-2.x", "RTX 5090").skip(uses_cudnn=False, allow_jit=False) is not None


@pytest.mark.parametrize(
    ("environment", "old", "new"),
    [
        ("torch-0.1", "375.20", "375.26"),
        ("torch-1.0", "384.69", "384.81"),
        ("torch-1.0", "384.69", "384.130"),  # 130 comes after 81
        ("tf-1.15", "410.47", "410.104"),
        ("torch-1.13", "450.51.06", "450.80.02"),
        ("tf-2.x", "525.53", "525.60.13"),
        ("tf-2.x", "470.199.02", "525.147.05"),
        ("torch-2.x", "575.57.08", "580.65.06"),
    ],
)
def test_drivers_are_compared_part_by_part(environment: str, old: str, new: str) -> None:
    on = "T4" if environment == "torch-2.x" else "GTX 1080"
    assert judged(environment, on, old).verdict.code == "driver"
    assert judged(environment, on, new).verdict.outcome == "runs"


@pytest.mark.parametrize("name", sorted({*OLD, *PASCAL, *VOLTA}))
def test_a_driver_of_branch_590_drives_nothing_before_turing(name: str) -> None:
    for environment in NATIVE:
        assert judged(environment, name, "590.44.01").verdict.outcome == "cannot"
    verdict = judged("jax", name, "590.44.01").verdict
    assert verdict.code == "driver"
    assert "branch 580 is the last" in verdict.reason


def test_what_calls_cudnn_is_refused_where_that_no_longer_serves_the_gpu() -> None:
    judgement = judged("tf-2.x", "V100")
    assert judgement.verdict.outcome == "runs"
    assert judgement.skip(uses_cudnn=False, allow_jit=False) is None
    held = judgement.skip(uses_cudnn=True, allow_jit=False)
    assert held is not None
    assert (held.code, held.reason) == (
        "arch",
        "cuDNN 9.27 does not support V100 (compute capability 7.0): 9.10 is the last that does (unverified)",
    )
    assert judged("tf-2.x", "T4").skip(uses_cudnn=True, allow_jit=False) is None
    assert judged("torch-1.13", "V100").skip(uses_cudnn=True, allow_jit=False) is None


@pytest.mark.parametrize(
    ("environment", "name", "driver", "expected"),
    [
        ("torch-2.x", "V100", NEW, ("torch-2.10", "torch==2.14.1+cu126")),
        ("torch-2.x", "GTX 1080", "384.81", ("torch-1.0",)),  # whose build is the nearest, too
        ("torch-1.13", "H200", "595.71.05", ("torch-2.1", "torch==2.0.1+cu118")),
        ("torch-1.13", "RTX 5090", "595.71.05", ("torch-2.8",)),  # whose build is the nearest, too
        ("torch-2.x", "H200", "550.54.15", ("torch-2.10", "torch==2.14.1+cu126")),
        ("tf-2.x", "H200", "550.54.15", ("tf-2.17", "tensorflow[and-cuda]==2.16.2")),  # by PTX made for it
        ("tf-2.x", "V100", NEW, ("tf-2.18",)),  # for what calls cuDNN
        ("torch-0.1", "V100", NEW, ("torch-0.3",)),
        ("keras-3", "GTX 1080", "384.81", ()),  # an older TensorFlow would be no help to Keras 3
        ("theano-1.0", "V100", NEW, ("theano-cudnn",)),
        ("jax", "GTX 1080", "595.71.05", ()),
        ("torch-2.x", "H200", "595.71.05", ()),  # it runs
    ],
)
def test_the_nearest_that_runs(environment: str, name: str, driver: str, expected: tuple[str, ...]) -> None:
    assert nearest(environment, name, driver) == expected


def test_what_cannot_be_had_is_not_the_nearest() -> None:
    assert nearest("torch-0.1", "V100", NEW, ("torch-0.3",)) == ("torch-0.4", "torch 0.3.1 for CUDA 9.0")
    every = tuple(name for name in NATIVE if name.startswith("torch-") and name != "torch-2.x")
    assert nearest("torch-2.x", "V100", NEW, every) == ("torch==2.14.1+cu126",)


def test_of_two_that_are_as_near_the_newer_is_named() -> None:
    lines = (
        '  torch-0.4: {framework: torch, release: "0.4.0", image: x, cuda: "9.0"}\n'
        '  torch-0.4.1: {framework: torch, release: "0.4.1", image: x, cuda: "8.0"}\n'
        '  torch-1.0: {framework: torch, release: "1.0.0", image: x, cuda: "9.0"}\n'
    )
    small = parse(f"version: 1\nworkloads: {{}}\nenvironments:\n{lines}".encode(), "m.yaml")
    request = Request(environments=("torch-0.4.1",), backend="docker")
    assert compatibility.judgements(small, request, gpu("V100"))["torch-0.4.1"].nearest[0] == "torch-1.0"


def test_a_build_whose_cudnn_does_not_serve_the_gpu_is_not_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    newer = tuple(replace(build, cudnn="9.11") if build.cuda.startswith("12") else build for build in known_builds())
    monkeypatch.setattr("runner.plan.compatibility.alternatives.builds", lambda: newer)
    assert nearest("torch-2.x", "V100") == ("torch-2.10", "torch==2.0.1")


def test_a_build_without_cuda_needs_the_cpu() -> None:
    skip = compatibility.judge(made(None), gpu("T4")).skip(uses_cudnn=False, allow_jit=True)
    assert skip is not None
    assert (skip.code, skip.source) == ("needs-gpu", "the matrix")


def test_a_variant_for_cpus_alone_needs_the_cpu() -> None:
    environment = made(None, python="3.6", variants={"cpu": {"requirements": ["torch"]}})
    skip = compatibility.judge(environment, gpu("T4")).skip(uses_cudnn=False, allow_jit=True)
    assert skip is not None
    assert skip.code == "needs-gpu"


def test_a_build_that_nothing_is_known_of_is_tried_where_the_driver_runs_its_cuda() -> None:
    for unknown in (made("9.0", "numpy"), made("10.2", "jax", "0.3.0")):
        assert compatibility.judge(unknown, gpu("H200")).build is None
        assert compatibility.judge(unknown, gpu("H200")).verdict.outcome == "runs"
    assert compatibility.judge(made("9.0", "numpy"), gpu("V100", "384.66")).verdict.code == "driver"


def test_a_release_between_known_ones_is_taken_to_be_as_its_neighbour_and_says_so() -> None:
    judgement = compatibility.judge(made("12.4", release="2.5.1"), gpu("RTX 5090", "595.71.05"))
    assert judgement.verdict.reason == (
        "torch 2.5.1 for CUDA 12.4 has no code for RTX 5090 (compute capability 12.0); its newest is 9.0 (unverified)"
    )
    assert compatibility.judge(made("12.4", release="2.5.1"), gpu("H200")).verdict.outcome == "runs"
    older = compatibility.judge(made("9.0", release="1.1.0"), gpu("H200"))
    assert older.verdict.reason.endswith("only PTX 5.0: assumed to be the same as in 1.0.0 (unverified)")


def test_minor_releases_of_cuda_share_the_driver_of_their_major_one() -> None:
    assert compatibility.judge(made("12.4", release="2.6.0"), gpu("H200", "525.60.13")).verdict.outcome == "runs"
    assert compatibility.judge(made("11.8", release="2.0.1"), gpu("V100", "440.33")).verdict.code == "driver"


def test_the_conda_images_of_pytorch_hold_ptx_that_the_wheels_leave_out() -> None:
    image = "pytorch/pytorch:1.8.1-cuda11.1-cudnn8-runtime"
    wheel = made("11.1", release="1.8.1", python="3.8", requirements=["torch==1.8.1+cu111"])
    assert compatibility.judge(wheel, gpu("H200")).verdict.outcome == "cannot"
    assert compatibility.judge(made("11.1", release="1.8.1", image=image), gpu("H200")).verdict.outcome == "jit"


def test_keys_of_the_matrix_that_cannot_go_together_are_told() -> None:
    def code(environment: Environment, backend: str = "docker", glibc: str | None = None) -> Skip | None:
        return compatibility.judge(environment, gpu("T4"), backend, glibc).skip(uses_cudnn=False, allow_jit=False)

    none = made("13.0", release="2.13.0", python="3.8", requirements=["torch==2.13.0"])
    verdict = code(none)
    assert verdict is not None
    assert verdict.code == "framework-lacks"
    assert "has no wheel for Python 3.8, only for 3.10, 3.11, 3.12, 3.13, 3.14 and 3.14t" in verdict.reason

    trap = made("10.0", "tensorflow", "1.15.5", python="3.7", requirements=["tensorflow==1.15.5"])
    verdict = code(trap)
    assert verdict is not None
    assert (verdict.code, verdict.reason) == (
        "needs-gpu",
        "tensorflow 1.15.5 contains no GPU code: tensorflow-gpu 1.15.5 does",
    )

    wheel = made("13.0", release="2.13.0", python="3.11", requirements=["torch==2.13.0"])
    on_old = wheel.model_copy(update={"base": "nvidia/cuda:13.0.0-cudnn-devel-ubuntu18.04"})
    assert code(wheel) is None
    for verdict in (code(on_old), code(wheel, "venv", "2.27")):
        assert verdict is not None
        assert verdict.code == "image-unavailable"
        assert "torch 2.13.0 for CUDA 13.0 needs glibc 2.28 or newer" in verdict.reason
    assert code(wheel, "venv", "2.28") is None
    assert code(wheel, "venv", None) is None
    assert code(on_old, "venv", "2.36") is None  # a venv is in no image

    image = made("12.5", "tensorflow", "2.18.0", image="tensorflow/tensorflow:2.18.0-gpu")
    verdict = code(image)
    assert verdict is not None
    assert verdict.code == "image-unavailable"
    assert verdict.reason.endswith("needs 9.3 and would compute on the CPU")
