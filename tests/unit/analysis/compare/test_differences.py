"""In what two environments differ: everything that was recorded, in the order that time depends on it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.analysis import dataset
from runner.analysis.compare import compare
from runner.analysis.compare.differences import SideFacts, differences
from runner.analysis.comparison_model import Comparison, Difference
from runner.core.model import Skip
from runner.report.differences import groups, sentence
from runner.store.run import Run, runs
from tests.support.fake_runs import cell, good, make

OLD: dict[str, Any] = {
    "version": "1.0.0",
    "cuda": "9.0.176",
    "cudnn": 7402,
    "tf32_default_matmul": None,
    "python": "3.6.15",
    "numpy": "1.19.5",
    "threads": 1,
    "base": "python:3.6-slim",
    "digest": "sha256:" + "ab" * 32,
    "bytes": 1,
    "import_seconds": 0.5,
    "import_cpu_seconds": 0.5,
    "packages": {"numpy": "1.19.5", "torch": "1.0.0", "typing_extensions": "4.1", "six": "1.17.0"},
}
NEW: dict[str, Any] = {
    "version": "2.13.0",
    "cuda": "13.0",
    "cudnn": 92000,
    "tf32_default_matmul": False,
    "python": "3.11.7",
    "numpy": "2.4.6",
    "blas": "Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 20240605 for Intel(R) 64 architecture",
    "onednn": "Intel(R) MKL-DNN v3.12.0",
    "threads": 2,
    "base": "python:3.11",
    "digest": "sha256:" + "cd" * 32,
    "bytes": 2,
    "import_seconds": 2.5,
    "import_cpu_seconds": 2.5,
    "packages": {"numpy": "2.4.6", "torch": "2.13.0+cpu", "typing-extensions": "4.16.0", "Jinja2": "3.1.6"},
}
GPU = {"device": "NVIDIA H200", "device_name": "NVIDIA H200", "driver": "580.1"}


def torch(facts: Mapping[str, Any], **rounds: str) -> SideFacts:
    return SideFacts(framework="torch", facts=facts, rounds=rounds)


def names(listed: tuple[Difference, ...], kind: str) -> list[str]:
    return [difference.name for difference in listed if difference.kind == kind]


def value(listed: tuple[Difference, ...], name: str) -> tuple[str | None, str | None]:
    (difference,) = (difference for difference in listed if difference.name == name)
    return difference.base, difference.other


def shown(listed: tuple[Difference, ...], base: str = "torch-1.0", other: str = "torch-2.x") -> str:
    made = Comparison(
        base=base, others=(other,), device="cpu", device_name="EPYC", rows=(), differences={other: listed}
    )
    return sentence(made, other)


def test_the_revision_of_the_source_stands_beside_the_digest() -> None:
    old, new = ({**facts, "source_revision": commit * 5} for facts, commit in ((OLD, "664058fa"), (NEW, "cf30153c")))
    (listed,) = (each for each in differences(torch(old), torch(new)) if each.name == "source revision")
    assert (listed.base, listed.other, listed.kind) == ("664058fa66", "cf30153ccf", "digest")
    alone = {**OLD, "version": "2.0.0", "source_revision": "cf30153c" * 5}
    assert "source revision" not in [each.name for each in differences(torch(OLD), torch(alone))], "one side is silent"
    same = differences(
        torch({"version": "1", "source_revision": "a" * 40}), torch({"version": "2", "source_revision": "b" * 40})
    )
    assert shown(same) == "between torch-1.0 and torch-2.x only torch differs: 1, 2"


def test_what_time_depends_on_comes_first_then_packages_then_the_rest() -> None:
    listed = differences(torch(OLD, **GPU), torch(NEW, **GPU))
    assert [difference.name for difference in listed] == [
        "torch",
        "CUDA",
        "cuDNN",
        "TF32 in products by default",
        "Python",
        "NumPy",
        "BLAS",
        "oneDNN",
        "base image",
        "digest",
        "typing_extensions",
        "Jinja2",
        "six",
        "threads reported by the framework",
    ]
    assert value(listed, "cuDNN") == ("7.4.2", "9.20.0")
    assert value(listed, "TF32 in products by default") == ("none", "no")


def test_equal_facts_and_measurements_of_the_environment_are_not_listed() -> None:
    assert (
        differences(torch(OLD, **GPU), torch({**OLD, "bytes": 9, "installed_bytes": 9, "import_seconds": 9.0}, **GPU))
        == ()
    )


def test_a_fact_that_one_side_alone_knows_is_said_and_none_is_not_unknown() -> None:
    listed = differences(torch({**OLD, "cuda": None}, **GPU), torch(NEW, **GPU))
    assert value(listed, "BLAS") == (None, "MKL 2024.2")
    assert value(listed, "oneDNN") == (None, "3.12.0")
    assert value(listed, "CUDA") == ("none", "13.0")
    assert "; BLAS, oneDNN (known only for torch-2.x); " in shown(listed)


def test_on_a_cpu_cuda_has_no_part_and_is_listed_last() -> None:
    cpu = {"device": "cpu", "device_name": "EPYC"}
    listed = differences(torch(OLD, **cpu), torch(NEW, **cpu))
    assert names(listed, "speed") == ["Python", "NumPy", "BLAS", "oneDNN", "base image"]
    assert names(listed, "rest")[:2] == ["CUDA", "cuDNN"]


@pytest.mark.parametrize(("number", "text"), [(6021, "6.0.21"), (8302, "8.3.2"), (91002, "9.10.2")])
def test_the_numbers_of_cudnn_become_versions(number: int, text: str) -> None:
    assert value(differences(torch({"cudnn": number}), torch({"cudnn": "7"})), "cuDNN") == (text, "7")


def test_a_package_is_told_by_its_normal_name_and_that_of_the_framework_is_not_listed_twice() -> None:
    listed = differences(torch(OLD), torch(NEW))
    assert names(listed, "package") == ["typing_extensions"]
    assert [
        (difference.name, difference.base, difference.other) for difference in listed if difference.kind == "alone"
    ] == [
        ("Jinja2", None, "3.1.6"),
        ("six", "1.17.0", None),
    ]


def test_packages_that_nobody_listed_are_not_taken_for_none() -> None:
    listed = differences(torch({"version": "1"}), torch({"version": "1", "packages": {"six": "1", "torch": "1"}}))
    assert listed == (Difference(name="packages", base=None, other="2", kind="speed"),)
    assert shown(listed) == "torch-2.x differs from torch-1.0 in packages (known only for torch-2.x)"


def test_packages_that_could_not_be_read_are_not_taken_for_none() -> None:
    """Python 3.7 without setuptools cannot list them."""
    listed = differences(torch({**OLD, "packages": {}}), torch(OLD))
    assert listed == (Difference(name="packages", base=None, other="4", kind="speed"),)


def test_across_frameworks_the_framework_is_the_difference_and_own_settings_come_last() -> None:
    corrected = torch({**OLD, "adam_epsilon": "corrected at each step"})
    two = SideFacts(
        framework="tensorflow",
        facts={"version": "1.8.0", "built_with_cuda": False, "inter_op_threads": 1, "adam_epsilon_hat": 3.1622776e-10},
    )
    listed = differences(corrected, two)
    assert value(listed, "framework") == ("torch 1.0.0", "tensorflow 1.8.0")
    assert value(listed, "CUDA") == ("9.0.176", "none")
    assert value(listed, "inter-op threads") == (None, "1")
    assert {"inter-op threads", "TF32 in products by default"} <= set(names(listed, "rest"))
    assert value(listed, "adam epsilon hat") == (None, "3.162e-10")
    assert {"adam epsilon", "adam epsilon hat"} <= set(names(listed, "rest"))


def test_the_backend_of_keras_is_one_difference(tmp_path: Path) -> None:
    base, other = cell("keras-2.1"), cell("keras-3")
    run = make(tmp_path, [good(base, 1, [1.0]), good(other, 1, [1.0])])
    tell(
        run,
        {
            "keras-2.1": {"version": "2.1.6", "backend": "theano", "backend_version": "1.0.1"},
            "keras-3": {"version": "2.1.6", "backend": "tensorflow", "backend_version": "1.8.0"},
        },
    )
    listed = compared(tmp_path, "keras-2.1", "keras-3").differences["keras-3"]
    assert listed == (Difference(name="backend", base="theano 1.0.1", other="tensorflow 1.8.0", kind="speed"),)


def test_where_only_the_framework_differs_exactly_that_is_said() -> None:
    other = {**OLD, "version": "1.12.1", "digest": "sha256:cd", "packages": {**OLD["packages"], "torch": "1.12.1"}}
    listed = differences(torch(OLD), torch(other))
    assert shown(listed, other="torch-1.12") == "between torch-1.0 and torch-1.12 only torch differs: 1.0.0, 1.12.1"
    assert shown(differences(torch(OLD), torch(OLD))) == "torch-1.0 and torch-2.x differ in nothing that was recorded"
    only_digest = differences(torch(OLD), torch({**OLD, "digest": "sha256:cd"}))
    assert "differ in their digest, and in nothing else" in shown(only_digest)


def test_a_sentence_names_values_and_counts_the_rest() -> None:
    assert shown(differences(torch(OLD, **GPU), torch({**NEW, "cuda": "9.0.176"}, **GPU))) == (
        "torch-2.x differs from torch-1.0 in torch 1.0.0 → 2.13.0, and also in cuDNN 7.4.2 → 9.20.0, "
        "TF32 in products by default none → no, Python 3.6.15 → 3.11.7, NumPy 1.19.5 → 2.4.6, "
        "base image python:3.6-slim → python:3.11; BLAS, oneDNN (known only for torch-2.x); "
        "1 package (typing_extensions); 2 packages on one side only (Jinja2, six); "
        "1 other setting (threads reported by the framework)"
    )


def test_groups_name_every_difference_once() -> None:
    listed = differences(torch(OLD, **GPU), torch(NEW, **GPU))
    made = groups(
        Comparison(base="a", others=("b",), device="", device_name="", rows=(), differences={"b": listed}), "b"
    )
    assert sum(len(group.rows) for group in made) == len(listed)
    assert [group.title for group in made][:4] == [
        "",
        "Packages in different versions",
        "Packages only in a",
        "Packages only in b",
    ]
    assert ("BLAS", "not known", "MKL 2024.2") in made[0].rows
    assert ("digest", "sha256:" + "ab" * 6, "sha256:" + "cd" * 6) in made[0].rows
    assert list(map(str, made[2].rows)) == ["six 1.17.0"]


def tell(run: Run, environments: Mapping[str, Mapping[str, Any]]) -> None:
    run.write_environments(environments)


def compared(reports: Path, base: str, *others: str) -> Comparison:
    return compare([dataset.load_dataset(run) for run in runs(reports)], base, others)


def test_what_rounds_say_is_compared_in_the_cells_that_are(tmp_path: Path) -> None:
    alone = cell("torch-2.x", precision="tf32")
    make(
        tmp_path,
        [
            good(cell("torch-1.0"), 1, [1.0], driver="550.54"),
            good(cell(), 1, [1.0], driver="580.1", precision="bf16"),
            good(alone, 1, [1.0], driver="580.1"),
        ],
    )
    listed = compared(tmp_path, "torch-1.0", "torch-2.x").differences["torch-2.x"]
    assert value(listed, "driver") == ("550.54", "580.1")
    assert value(listed, "effective precision") == ("fp32", "bf16")


def test_sides_of_different_runs_differ_in_their_machines_too(tmp_path: Path) -> None:
    tell(make(tmp_path, [good(cell("torch-1.0"), 1, [1.0])], kernel="6.1"), {"torch-1.0": {"version": "1.0.0"}})
    later = make(tmp_path, [good(cell(), 1, [1.0])], later=9, kernel="6.18", cpu="EPYC 9", load_average=[1.0])
    tell(later, {"torch-2.x": {"version": "1.0.0"}, "torch-1.0": {"version": "9"}})
    listed = compared(tmp_path, "torch-1.0", "torch-2.x").differences["torch-2.x"]
    assert [difference.name for difference in listed] == ["device", "kernel"]


@pytest.mark.parametrize(("cpus", "expected"), [([[2, 3], [0, 1, 2, 3]], [("2", "4")]), ([[2, 3], [0, 1]], [])])
def test_steps_that_roam_over_the_cores_differ_from_those_that_do_not(
    cpus: list[list[int]], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    make(tmp_path, [good(cell("torch-1.0"), 1, [1.0], cpus=cpus[0])])
    make(tmp_path, [good(cell(), 1, [1.0], cpus=cpus[1])], later=9)
    listed = compared(tmp_path, "torch-1.0", "torch-2.x").differences["torch-2.x"]
    assert [
        (difference.base, difference.other) for difference in listed if difference.name == "processors used"
    ] == expected


def test_a_published_side_has_no_facts_to_differ_in(tmp_path: Path) -> None:
    make(tmp_path, [good(cell(), 1, [1.0])])
    assert compared(tmp_path, "published:braun2018/torch-0.4", "torch-2.x").differences == {}


def test_an_environment_that_was_not_measured_has_no_entry(tmp_path: Path) -> None:
    skips = {cell("torch-0.4"): Skip("no-engine", "none answers")}
    make(tmp_path, [good(cell("torch-1.0"), 1, [1.0]), good(cell(), 1, [1.0])], skips)
    assert list(compared(tmp_path, "torch-1.0", "torch-0.4", "torch-2.x").differences) == ["torch-2.x"]


def test_variables_are_listed_each_with_what_both_sides_have() -> None:
    base = torch({"version": "1", "digest": "sha256:ab", "env": {"A": "1", "C": "5", "B": ""}})
    other = torch({"version": "1", "digest": "sha256:ab env:0123456789ab", "env": {"A": "2", "C": "5", "D": "x y"}})
    listed = differences(base, other)
    assert [(each.name, each.base, each.other, each.kind) for each in listed] == [
        ("variable A", "1", "2", "speed"),
        ("variable B", "empty", "not set", "speed"),
        ("variable D", "not set", "x y", "speed"),
    ]
    assert shown(listed) == (
        "torch-2.x differs from torch-1.0 in variable A 1 → 2, variable B empty → not set, variable D not set → x y"
    )


def test_a_run_of_an_older_program_had_no_variables() -> None:
    listed = differences(torch({"version": "1"}), torch({"version": "1", "env": {"A": "1"}}))
    assert [(each.name, each.base, each.other) for each in listed] == [("variable A", "not set", "1")]


def test_flags_of_xla_are_listed_once() -> None:
    flags = "--xla_cpu_use_thunk_runtime=false"
    base, other = {"version": "1", "xla_flags": ""}, {"version": "1", "xla_flags": flags, "env": {"XLA_FLAGS": flags}}
    assert names(differences(torch(base), torch(other)), "speed") == ["variable XLA_FLAGS"]
    del other["env"]
    assert names(differences(torch(base), torch(other)), "speed") == ["XLA flags"]


def numpy_side(version: str, openblas: str | None, **more: Any) -> SideFacts:
    """Return a side whose framework is NumPy, as the harness describes it."""
    facts = {"version": version, "numpy": version, "openblas": openblas, "openblas_integers": "64 bits"}
    return SideFacts(framework="numpy", facts={**facts, "packages": {"numpy": version}, **more})


def test_numpy_as_the_framework_is_named_once_and_then_its_libraries() -> None:
    listed = differences(numpy_side("1.21.6", "0.3.17", openblas_integers="32 bits"), numpy_side("1.22.4", "0.3.18"))
    assert [difference.name for difference in listed] == ["numpy", "OpenBLAS", "OpenBLAS integers"]
    assert shown(listed, "numpy-1.21", "numpy-1.22") == (
        "numpy-1.22 differs from numpy-1.21 in numpy 1.21.6 → 1.22.4, and also in OpenBLAS 0.3.17 → 0.3.18, "
        "OpenBLAS integers 32 bits → 64 bits"
    )


def test_numpy_below_another_framework_stays_a_difference() -> None:
    listed = differences(torch({**OLD, "numpy": "1.21.6"}), torch({**OLD, "numpy": "1.22.4"}))
    assert value(listed, "NumPy") == ("1.21.6", "1.22.4")
    across = differences(numpy_side("1.21.6", "0.3.17"), torch({**OLD, "numpy": "1.22.4"}))
    assert value(across, "NumPy") == ("1.21.6", "1.22.4")


def test_a_library_that_a_side_has_not_loaded_is_none_and_not_unknown() -> None:
    listed = differences(numpy_side("1.26.4", "0.3.23"), numpy_side("1.26.4", None, mkl="2024.2"))
    assert value(listed, "OpenBLAS") == ("0.3.23", "none")
    assert value(listed, "MKL") == (None, "2024.2")  # the base is of an older version, which did not look for it


def test_an_allocator_and_its_variables_are_differences() -> None:
    plain = {"allocator": "that of the C library", "allocator_settings": "", "c_library": "glibc 2.28"}
    other = {"allocator": "jemalloc", "allocator_settings": "MALLOC_CONF=narenas:1", "c_library": "glibc 2.36"}
    listed = differences(torch({**OLD, **plain}), torch({**OLD, **other}))
    assert [(each.name, each.base, each.other, each.kind) for each in listed] == [
        ("memory allocator", "that of the C library", "jemalloc", "speed"),
        ("allocator settings", "none", "MALLOC_CONF=narenas:1", "speed"),
        ("C library", "glibc 2.28", "glibc 2.36", "speed"),
    ]


def test_packages_that_do_a_part_of_the_framework_s_work_are_named_among_many() -> None:
    others = {f"package-{number}": "1" for number in range(12)}
    newer = dict.fromkeys(others, "2")
    old = SideFacts(framework="tensorflow", facts={"version": "2.15.1", "packages": {**others, "keras": "2.15.0"}})
    new = SideFacts(framework="tensorflow", facts={"version": "2.16.2", "packages": {**newer, "keras": "3.15.1"}})
    listed = differences(old, new)
    assert names(listed, "speed") == ["keras"]
    assert shown(listed, "tf-2.15", "tf-2.16") == (
        "tf-2.16 differs from tf-2.15 in tensorflow 2.15.1 → 2.16.2, and also in keras 2.15.0 → 3.15.1; 12 packages"
    )


def test_keras_that_tensorflow_tells_is_not_listed_again_as_a_package() -> None:
    old, new = (
        SideFacts(framework="tensorflow", facts={"version": "2", "keras": keras, "packages": {"keras": keras}})
        for keras in ("2.12.0", "2.13.1")
    )
    assert differences(old, new) == (Difference(name="Keras", base="2.12.0", other="2.13.1", kind="speed"),)
