"""Environments that add packages to another: what they become, and what is said of mistakes in them, word for word."""

from pathlib import Path

import pytest
from packaging.requirements import Requirement

from runner.core.errors import MatrixError
from runner.matrix import Environment, Matrix, parse, select_environments
from runner.matrix.nightly import base_mistakes
from runner.plan.specs import all_specs, specs
from runner.releases.candidates import made_from, of_matrix, templates
from runner.releases.followed import followed_environments
from runner.releases.lock_requests import lock_request, lock_requests

HEAD = """\
version: 1
workloads: {rnn-step: {}}
environments:
  torch-1.12:
    {framework: torch, release: "1.12.1", python: "3.10", requirements: [torch==1.12.1, numpy<2], lock: a/t.txt}
  torch-2.x:
    framework: torch
    release: "2.*"
    python: "3.11"
    note: floats
    variants:
      cpu: {base: "python:3.11", lock: locks/cpu.txt, requirements: [torch==2.13.0+cpu, numpy], follow: "torch>=2,<3"}
      cuda-11.8: {image: "pytorch/pytorch:2.13.0", cuda: "11.8"}
      cuda-13.0: {requirements: [torch==2.13.0, numpy], index: "https://example.org/a", cuda: "13.0"}
  tf-1.8:
    framework: tensorflow
    release: "1.8.0"
    python: "3.6"
    variants: {cpu: {requirements: [tensorflow==1.8.0]}, cuda: {image: "tensorflow/tensorflow:1.8.0-gpu", cuda: "9.0"}}
  torch-0.4: {framework: torch, release: "0.4.0", image: "pytorch/pytorch:0.4"}
  locked: {framework: torch, release: "1.0.0", python: "3.6", lock: locks/old.txt}
"""
VISION = f"{HEAD}  torch-2.x-vision: {{extends: torch-2.x, add: [torchvision, einops>=0.8]}}\n"


def matrix_of(text: str) -> Matrix:
    return parse(text.encode(), "m.yaml")


def environment_of(entry: str) -> Environment:
    return matrix_of(f"{HEAD}  new: {entry}\n").environments["new"]


def message_of(entry: str) -> str:
    with pytest.raises(MatrixError) as caught:
        environment_of(entry)
    return str(caught.value)


def test_an_extension_has_all_keys_of_the_other_with_its_packages_and_a_lock_beside_the_other() -> None:
    extension = environment_of("{extends: torch-1.12, add: [einops]}")
    base = matrix_of(HEAD).environments["torch-1.12"]
    assert extension == base.model_copy(
        update={
            "extends": "torch-1.12",
            "add": ("einops",),
            "requirements": ("torch==1.12.1", "numpy<2", "einops"),
            "lock": "a/new.txt",
        }
    )


def test_each_variant_has_the_packages_and_a_lock_named_after_it_but_images_are_left_out() -> None:
    variants = matrix_of(VISION).environments["torch-2.x-vision"].variants
    assert {key: (each.lock, each.requirements, each.follow) for key, each in variants.items()} == {
        "cpu": (
            "locks/torch-2.x-vision-cpu.txt",
            ("torch==2.13.0+cpu", "numpy", "torchvision", "einops>=0.8"),
            "torch>=2,<3",
        ),
        "cuda-13.0": (
            "docker/locks/torch-2.x-vision-cuda-13.0.txt",
            ("torch==2.13.0", "numpy", "torchvision", "einops>=0.8"),
            None,
        ),
    }
    assert variants["cpu"].base == "python:3.11"
    assert variants["cuda-13.0"].index == "https://example.org/a"


@pytest.mark.parametrize(("note", "expected"), [("", "floats"), (", note: for crops", "for crops")])
def test_a_note_replaces_that_of_the_other(note: str, expected: str) -> None:
    assert environment_of(f"{{extends: torch-2.x, add: [torchvision]{note}}}").note == expected


def test_an_environment_may_extend_one_further_below() -> None:
    text = HEAD.replace("environments:\n", "environments:\n  new: {extends: torch-2.x, add: [einops]}\n")
    assert matrix_of(text).environments["new"].release == "2.*"


@pytest.mark.parametrize(
    ("selectors", "expected"),
    [
        (["torch-2.x"], ("torch-2.x",)),
        (["torch-2.x-vision"], ("torch-2.x-vision",)),
        (["torch-2.x*"], ("torch-2.x", "torch-2.x-vision")),
        (["torch>=2"], ("torch-2.x", "torch-2.x-vision")),
    ],
)
def test_an_id_selects_the_environment_and_none_that_extends_it(
    selectors: list[str], expected: tuple[str, ...]
) -> None:
    assert select_environments(matrix_of(VISION), selectors) == expected


MISTAKES = {
    "an unknown environment": (
        "{extends: torch-1.13, add: [einops]}",
        ("22:18", "new extends 'torch-1.13', and there is no such environment", "did you mean 'torch-1.12'?"),
    ),
    "itself": ("{extends: new, add: [einops]}", ("22:18", "new extends itself", "name another environment")),
    "a circle": (
        "{extends: b, add: [einops]}\n  b: {extends: torch-1.12, add: [tqdm]}",
        (
            "22:18",
            "new extends b, which extends torch-1.12",
            "extend an environment that extends none, and list all packages in add:",
        ),
    ),
    "an image": (
        "{extends: torch-0.4, add: [einops]}",
        (
            "22:18",
            "new extends torch-0.4, an image, which is pulled as it is",
            "packages are added to what a lock installs: write an environment with python: and requirements:",
        ),
    ),
    "a lock without requirements": (
        "{extends: locked, add: [einops]}",
        (
            "22:18",
            "new extends locked, which has no requirements",
            "add requirements: to locked, from which its lock was made",
        ),
    ),
    "no packages": (
        "{extends: torch-1.12}",
        (
            "22:9",
            "new extends torch-1.12 and adds neither packages nor variables",
            'name packages, or variables: add: [torchvision], env: {OMP_WAIT_POLICY: "passive"}',
        ),
    ),
    "a variable that is a number": (
        "{extends: torch-1.12, env: {OMP_NUM_THREADS: 1}}",
        ("22:53", "OMP_NUM_THREADS must be text, and YAML read a number", "put it in quotes: '1'"),
    ),
    "a variable that is a truth value": (
        "{extends: torch-1.12, env: {A: yes}}",
        ("22:39", "A must be text, and YAML read true or false", "put it in quotes: 'yes'"),
    ),
    "a variable without a value": (
        "{extends: torch-1.12, env: {A: }}",
        ("22:36", "A must be text, and nothing is written", "write it in quotes"),
    ),
    "a name that no variable has": (
        '{extends: torch-1.12, env: {A-B: "1"}}',
        ("22:36", "A-B is not the name of a variable", "use letters, digits and underscores, and no digit first"),
    ),
    "a variable of the runner": (
        "{extends: torch-1.12, env: {TMPDIR: /x}}",
        ("22:36", "TMPDIR cannot be set for an environment: each server has a folder of its own for it", "remove it"),
    ),
    "a password": (
        '{extends: torch-1.12, env: {A: "http://u:p@x"}}',
        (
            "22:39",
            'A has a user or a password in an address, found "http://u:p@x"',
            "write the address without it: records hold all values",
        ),
    ),
    "variables that are a list": (
        '{extends: torch-1.12, env: [A, "1"]}',
        ("22:35", "env must be a mapping, and YAML read a list", "write lines of key: value below it, indented"),
    ),
    "packages without an environment": (
        '{framework: torch, release: "1", image: a, add: [x]}',
        (
            "22:51",
            "new adds packages, and extends no environment",
            "write extends: and the environment that they extend, or move them to requirements:",
        ),
    ),
    "a package twice": (
        "{extends: torch-1.12, add: [Tensor_Dict, tensor-dict>1]}",
        ("22:49", "new adds tensor-dict twice", "keep one of the two"),
    ),
    "a package that the other requires": (
        "{extends: torch-1.12, add: [numpy]}",
        (
            "22:36",
            "new adds numpy, and torch-1.12 requires numpy<2",
            "remove it, or write the environment without extends:",
        ),
    ),
    "a key of the other": (
        '{extends: torch-1.12, add: [einops], python: "3.11"}',
        ("22:45", "new takes python from torch-1.12", "remove python:, or write the environment without extends:"),
    ),
    "a misspelt key": (
        "{extend: torch-1.12, add: [einops]}",
        ("22:9", "unknown key 'extend'", "did you mean 'extends'?"),
    ),
    "a number": (
        "{extends: 1.12, add: [einops]}",
        ("22:18", "extends must be text, and YAML read a number", "put it in quotes: '1.12'"),
    ),
    "no list": (
        "{extends: torch-1.12, add: einops}",
        ("22:35", "add must be a list, and YAML read text", "put it in brackets: [einops]"),
    ),
    "a path": (
        "{extends: torch-1.12, add: [./einops]}",
        (
            "22:36",
            "an item of add is not a requirement (PEP 508), found ./einops",
            "write a name and versions, such as numpy<2",
        ),
    ),
}


@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_a_mistake_has_its_place_and_a_hint(mistake: str) -> None:
    entry, (where, message, hint) = MISTAKES[mistake]
    expected = message_of(entry)
    assert expected.startswith(f"m.yaml:{where}: error: {message}\n")
    assert expected.endswith(f"\nhint: {hint}")
    assert expected.count("error:") == 1


def test_an_extension_by_variables_has_the_image_of_the_other_and_the_variables_of_both(tmp_path: Path) -> None:
    text = HEAD.replace("lock: a/t.txt}", 'lock: a/t.txt, env: {A: "1", B: "2"}}')
    matrix = matrix_of(f"{text}  new: {{extends: torch-1.12, env: {{B: '3', C: ''}}}}\n")
    base, extension = matrix.environments["torch-1.12"], matrix.environments["new"]
    assert extension.env == {"A": "1", "B": "3", "C": ""}
    assert extension == base.model_copy(update={"extends": "torch-1.12", "env": extension.env})
    assert matrix.image_of("new") == matrix.image_of("torch-1.12") == "torch-1.12"
    built, _ = specs(matrix, ["torch-1.12", "new"], "cpu", tmp_path)
    assert [spec.environment for spec in built] == ["torch-1.12"]
    assert "new" not in {spec.environment for spec in all_specs(matrix, tmp_path)}
    (tmp_path / "matrix.yaml").write_text(f"{text}  new: {{extends: torch-1.12, env: {{B: '3'}}}}\n")
    assert [each.name for each in lock_requests(tmp_path / "matrix.yaml", ["new"])] == ["torch-1.12"]


def test_an_extension_may_add_packages_and_variables() -> None:
    extension = environment_of('{extends: torch-1.12, add: [einops], env: {A: "1"}}')
    assert (extension.requirements[-1], extension.env) == ("einops", {"A": "1"})


def test_an_image_can_be_extended_by_variables() -> None:
    matrix = matrix_of(f"{HEAD}  new: {{extends: torch-0.4, env: {{A: b}}}}\n")
    assert matrix.image_of("new") == "torch-0.4"


def test_mistakes_of_the_other_are_reported_where_they_are_written_alone() -> None:
    with pytest.raises(MatrixError) as caught:
        matrix_of(VISION.replace("[torch==2.13.0, numpy]", "torch"))
    assert [problem.where.line for problem in caught.value.problems if problem.where] == [14]


def test_an_image_is_the_reason_that_a_device_has_no_build(tmp_path: Path) -> None:
    matrix = matrix_of(f"{HEAD}  tf-1.8-new: {{extends: tf-1.8, add: [tqdm]}}\n")
    _, skips = specs(matrix, ["tf-1.8-new"], "cuda", tmp_path)
    assert str(skips["tf-1.8-new"].reason) == "tf-1.8 is an image on cuda, and no packages can be added to an image"


def test_locks_of_extensions_come_last_and_keep_the_versions_of_the_other_s_lock(tmp_path: Path) -> None:
    text = HEAD.replace("environments:\n", "environments:\n  new: {extends: torch-2.x, add: [einops]}\n")
    (tmp_path / "matrix.yaml").write_text(text)
    requests = lock_requests(tmp_path / "matrix.yaml", ["new", "torch-2.x"])
    assert [(each.name, each.variant, each.versions) for each in requests] == [
        ("torch-2.x", "cpu", None),
        ("torch-2.x", "cuda-13.0", None),
        ("new", "cpu", tmp_path / "locks/cpu.txt"),
        ("new", "cuda-13.0", None),
    ]


def test_a_lock_is_resolved_from_all_requirements_and_checked_in_any_case(tmp_path: Path) -> None:
    request = lock_request(tmp_path, "torch-2.x-vision", matrix_of(VISION).environments["torch-2.x-vision"], "cpu")
    assert request is not None
    assert request.out == tmp_path / "locks/torch-2.x-vision-cpu.txt"
    assert request.requirements == ("torch==2.13.0+cpu", "numpy", "torchvision", "einops>=0.8")
    assert request.named


def test_nights_follow_the_package_of_the_other_and_keep_those_that_were_added(tmp_path: Path) -> None:
    names = ("torch-2.x", "torch-2.x-vision")
    followed = followed_environments(matrix_of(VISION), names, "cpu", tmp_path, tmp_path / "reports")
    assert [each.folder for each in followed] == ["torch-2.x-cpu", "torch-2.x-vision-cpu"]
    assert followed[1].request.requirements == ("torch>=2,<3", "numpy", "torchvision", "einops>=0.8")


def test_a_base_of_nights_may_extend_an_environment_that_stays() -> None:
    matrix = matrix_of(f"{HEAD}  new: {{extends: torch-1.12, add: [einops]}}\n")
    assert list(base_mistakes(matrix, ["new"])) == []


def test_a_bisection_makes_releases_with_the_added_packages(tmp_path: Path) -> None:
    candidates = list(of_matrix(matrix_of(VISION), "torch", "cpu", tmp_path))
    template = next(each for each in templates(candidates, "cpu") if each.name == "torch-2.x-vision")
    made = made_from(template, Requirement("torch"), "2.4.0", "cpu").environment.variant("cpu")
    assert made is not None
    assert made.requirements == ("torch==2.4.0", "numpy", "torchvision", "einops>=0.8")
