"""The facts are whole, and agree with each other; the rules on them give what was worked out before."""

import csv
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from runner.catalog.hardware import facts, tables
from runner.catalog.hardware.builds import Build, builds
from runner.catalog.hardware.versions import Capability, same_series, version_numbers
from runner.core.model import Gpu
from runner.plan.compatibility.rules import (
    BuildTarget,
    code_verdict,
    cudnn_refusal,
    cudnn_warning,
    judge,
    native_code,
    ptx_code,
)

FILES = (
    *("builds.csv", "toolkits.csv", "generations.csv", "drivers.csv", "cudnn.csv", "bases.csv", "peaks.csv"),
    "precisions.csv",
)
BOARDS: Mapping[str, Capability] = {
    "GTX 1080": (6, 1),
    "V100 SXM2": (7, 0),
    "A100 SXM4": (8, 0),
    "H200": (9, 0),
    "RTX 5090": (12, 0),
}
WORDS = {"runs": "sass", "jit": "JIT", "cannot": "NO"}

# What differs from a derivation that looks at native code and PTX alone, and why.
DIFFERENCES = {
    ("tensorflow", "2.16.1", "gpu", "RTX 5090"): "CUDA_ERROR_INVALID_PTX was reported: tensorflow/tensorflow#101746",
    ("tensorflow", "2.16.2", "gpu", "RTX 5090"): "CUDA_ERROR_INVALID_PTX was reported: tensorflow/tensorflow#101746",
    ("tensorflow", "2.20.0", "gpu", "RTX 5090"): "CUDA_ERROR_INVALID_PTX was reported: tensorflow/tensorflow#101746",
}
# What that derivation has no row of, and why it is among the builds all the same.
EXTRA_VERDICTS = {
    ("torch", "1.12.1", "cu102"): "it was in the shipped matrix",
    ("jax", "0.4.38", "cuda12"): "it is in the shipped matrix",
    ("tensorflow-gpu", "0.8.0", "gpu"): "it is in the shipped matrix",
    ("theano", "0.9.0", "gpuarray"): "it compiles for the GPU at hand",
    ("theano", "1.0.1", "gpuarray"): "it compiles for the GPU at hand",
    ("theano", "1.0.5", "gpuarray"): "it compiles for the GPU at hand",
    ("torch7", "7", "image"): "it is in the shipped matrix",
    ("tensorflow", "1.15.5", "cpu"): "it holds no code for GPUs, for all its name says",
}


def board(name: str, driver: str = "9999") -> Gpu:
    return Gpu(uuid="GPU-1", name=name, capability=BOARDS[name], driver=driver)


def target(build: Build, name: str, driver: str = "9999") -> BuildTarget:
    return BuildTarget(gpu=board(name, driver), cuda=build.cuda)


def expected() -> dict[tuple[str, str, str, str], str]:
    with (Path(__file__).parent / "data" / "code_on_boards.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {(row["package"], row["release"], row["variant"], name): row[name] for row in rows for name in BOARDS}


def test_the_verdicts_are_those_of_the_code_but_for_the_differences_that_are_explained() -> None:
    known = {(build.package, build.release, build.variant): build for build in builds()}
    different = {}
    for key, word in expected().items():
        build = known[key[:3]]
        verdict = code_verdict(build, target(build, key[3]))
        if WORDS[verdict.outcome if verdict else "runs"] != word:
            different[key] = verdict
    assert set(different) == set(DIFFERENCES)
    for key, verdict in different.items():
        assert verdict is not None
        assert verdict.outcome == "cannot"
        reported, _, thread = DIFFERENCES[key].partition(": ")
        assert reported in verdict.reason
        assert thread.rpartition("#")[2] in verdict.source
    assert set(known) - {key[:3] for key in expected()} == set(EXTRA_VERDICTS)


def test_each_difference_is_explained_in_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "gpus.md").read_text("utf-8").replace("\\", "")
    shown = page.partition("| build | GPU | why | source |")[2].partition("## Sources")[0]
    lines = [line for line in shown.splitlines() if line.startswith("| tensorflow")]
    assert len(lines) == len(DIFFERENCES)
    for package, version, _, name in DIFFERENCES:
        (line,) = [line for line in lines if f"| {package} {version} for" in line]
        assert name in line
        assert DIFFERENCES[package, version, "gpu", name].partition(":")[0] in line


@pytest.mark.parametrize("name", FILES)
def test_every_row_names_its_source_and_how_far_it_was_checked(name: str) -> None:
    rows = list(tables.rows(name))
    assert rows
    for row in rows:
        assert None not in row, row  # a comma too many
        assert row["source"], row
        assert row["status"], row
        assert set(filter(None, row["unverified"].split(";"))) <= set(row), row
        caveat = re.search("unverified|from memory|secondary|recipe|not opened|assumed|as 13.0", row["status"])
        assert not row["unverified"] or caveat or name in {"cudnn.csv", "generations.csv", "bases.csv"}, row


def test_no_row_is_there_twice() -> None:
    keys = [(build.package, build.release, build.variant) for build in builds()]
    assert len(keys) == len(set(keys))
    for name, column in (("toolkits.csv", "cuda"), ("drivers.csv", "branch"), ("cudnn.csv", "since")):
        values = [row[column] for row in tables.rows(name)]
        assert values == sorted(set(values), key=version_numbers), name


def test_the_drivers_of_toolkits_and_of_branches_agree() -> None:
    for toolkit in facts.toolkits():
        assert version_numbers(toolkit.oldest) <= version_numbers(toolkit.driver)
        brought = facts.branch(toolkit.driver)
        if float(toolkit.cuda) >= 9:  # the oldest branch that is known
            assert brought is not None, toolkit.cuda
            assert brought.cuda == toolkit.cuda
        same = [entry.oldest for entry in facts.toolkits() if entry.cuda.split(".")[0] == toolkit.cuda.split(".")[0]]
        assert len(set(same)) <= 2 or float(toolkit.cuda) < 11  # CUDA 11.0 alone begins earlier than its series


def test_a_generation_ends_where_its_toolkits_end() -> None:
    for name in ("Maxwell", "Pascal", "Volta"):
        (row_of_name,) = [row for row in tables.rows("generations.csv") if row["name"] == name]
        assert row_of_name["last"] == "580"
        capability = facts.generation((int(row_of_name["capabilities"][0]), int(row_of_name["capabilities"][2])))
        assert capability is not None
        newest = [entry for entry in facts.toolkits() if set(capability.capabilities) & set(entry.sass)][-1]
        assert newest.cuda == "12.9"


def test_every_build_has_a_toolkit_that_makes_its_code() -> None:
    for build in builds():
        if build.cuda:
            known = facts.toolkit(build.cuda)
            assert known is not None
            assert same_series(known.cuda, build.cuda), build.name
            if "." in build.cuda:
                assert set(build.sass) <= set(known.sass), build.name
        assert build.cuda or build.compiles or build.variant == "cpu"


@pytest.mark.parametrize("build", builds(), ids=lambda build: f"{build.package}-{build.release}-{build.variant}")
def test_native_code_is_of_the_same_generation_and_ptx_of_an_older_gpu(build: Build) -> None:
    for capability in [(major, minor) for major in range(2, 14) for minor in range(10)]:
        code = native_code(build, capability)
        assert code is None or (code in build.sass and code[0] == capability[0] and code[1] <= capability[1])
        newer = [code for code in build.sass if code[0] == capability[0] and code[1] <= capability[1]]
        assert bool(newer) == (code is not None)
        ptx = ptx_code(build, capability)
        assert ptx is None or (ptx in build.ptx and ptx <= capability)


@pytest.mark.parametrize("build", [entry for entry in builds() if entry.cuda and entry.sass])
def test_a_newer_driver_never_takes_away_but_by_dropping_the_gpu(build: Build) -> None:
    drivers = [entry.driver for entry in facts.toolkits() if version_numbers(entry.driver) < version_numbers("581")]
    for name in BOARDS:
        words = [judge(build, target(build, name, driver)).outcome for driver in drivers]
        able = [word != "cannot" for word in words]
        assert able == sorted(able), (build.name, name)
        assert len({word for word in words if word != "cannot"}) <= 1


def test_ptx_needs_the_driver_of_its_toolkit_where_native_code_does_not() -> None:
    (build,) = [entry for entry in builds() if (entry.package, entry.release) == ("tensorflow", "2.21.0")]
    assert judge(build, target(build, "A100 SXM4", "525.60.13")).outcome == "runs"
    refused = judge(build, target(build, "H200", "555.42.05"))
    assert (refused.outcome, refused.code) == ("cannot", "driver")
    assert refused.reason == (
        "tensorflow 2.21.0 for CUDA 12.5 has only PTX for H200 (compute capability 9.0), which driver 555.42.05 "
        "(CUDA 12.5) cannot compile; driver 555.42.06 or newer can"
    )
    assert judge(build, target(build, "H200", "555.42.06")).outcome == "jit"


def test_a_driver_from_before_the_gpu_does_not_know_it() -> None:
    (build,) = [
        entry for entry in builds() if (entry.package, entry.release, entry.variant) == ("torch", "2.8.0", "cu128")
    ]
    verdict = judge(build, target(build, "RTX 5090", "565.57.01"))
    assert (verdict.code, verdict.reason) == (
        "driver",
        "driver 565.57.01 does not support RTX 5090 (Blackwell): 570.26 is the first that does (unverified)",
    )
    assert judge(build, target(build, "RTX 5090", "570.26")).outcome == "runs"


@pytest.mark.parametrize(("version", "served"), [("9.10.2", True), ("9.10", True), ("9.11.0", False), ("9.28", False)])
def test_cudnn_left_volta_with_9_11(version: str, served: bool) -> None:  # noqa: FBT001
    verdict = cudnn_refusal(BuildTarget(gpu=board("V100 SXM2"), cuda="12.9", cudnn=version))
    assert (verdict is None) == served
    assert cudnn_refusal(BuildTarget(gpu=board("A100 SXM4"), cuda="12.9", cudnn=version)) is None


@pytest.mark.parametrize(
    ("version", "name", "warned"),
    [
        ("7.1.2", "A100 SXM4", True),
        ("7.6.5.32", "H200", True),
        ("7.6.5.32", "GTX 1080", False),
        ("8.0", "A100 SXM4", False),
        ("9.27", "H200", False),
        (None, "H200", False),
    ],
)
def test_cudnn_7_ends_with_turing(version: str | None, name: str, warned: bool) -> None:  # noqa: FBT001
    assert bool(cudnn_warning(BuildTarget(gpu=board(name), cuda="9.0", cudnn=version))) == warned


@pytest.mark.parametrize("version", [None, "4.0", "7", "7.6.5.32", "8.0"])
def test_an_old_cudnn_serves_what_its_framework_has_code_for(version: str | None) -> None:
    assert cudnn_refusal(BuildTarget(gpu=board("GTX 1080"), cuda="9.0", cudnn=version)) is None


def test_gpus_and_drivers_that_are_not_known_are_tried() -> None:
    (build,) = [
        entry for entry in builds() if (entry.package, entry.release, entry.variant) == ("torch", "2.15.0", "cu132")
    ]
    new = Gpu(uuid="GPU-1", name="new", capability=(12, 9), driver="999.1")
    assert judge(build, BuildTarget(gpu=new, cuda="13.2")).outcome == "runs"
    assert judge(None, BuildTarget(gpu=new, cuda="99.0")).outcome == "runs"
    assert judge(None, BuildTarget(gpu=new, cuda="1.0")).outcome == "runs"
