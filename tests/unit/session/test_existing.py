"""Interpreters and images as they are become environments, and the backend that measures them is chosen."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.backends import Installed
from runner.core.errors import UsageError
from runner.core.model import Request
from runner.matrix import load
from runner.plan.verdicts import selected_cells
from runner.session.existing import (
    ExistingEnvironments,
    backend_for,
    choice_note,
    host_matrix,
    with_existing,
    word_of,
)
from runner.session.options import Options
from tests.support.fake_servers import FakeBackend

ROOT = Path(__file__).parents[3]
A, B = "python:/opt/conda/envs/a/bin/python", "python:/opt/conda/envs/b/bin/python"


class Probed(FakeBackend):
    """A backend that finds JAX everywhere, or the framework that is asked for."""

    def probe(self, source: str, environment: str, framework: str | None = None) -> Installed:
        """See Backend."""
        assert environment
        image = "" if source.startswith("/") else source
        python = "python" if image else source
        return Installed(
            python=python,
            framework=framework or "jax",
            release="0.8.1",
            python_version="3.12",
            others=("torch",),
            image=image,
        )


def existing(*selectors: str, **options: Any) -> ExistingEnvironments:
    """Return what selectors make of the shipped matrix."""
    typed = Options(selectors=[*selectors], **options)
    return with_existing(load(ROOT / "matrix.yaml", networks=False), typed, Probed())


def test_interpreters_join_the_matrix_under_the_names_of_their_environments() -> None:
    made = existing(A, f"mine={B}@env:X=1", "torch-1.0", f"!{A}@threads:4")
    assert made.options.selectors == ["a", "mine@env:X=1", "torch-1.0", "!a@threads:4"]
    assert {*made.installed} == made.matrix.as_is == {"a", "mine"}
    environment = made.matrix.environments["a"]
    assert (environment.framework, environment.release, environment.python) == ("jax", "0.8.1", "3.12")
    assert "torch-1.0" in made.matrix.environments
    assert made.notes[0] == "a: /opt/conda/envs/a/bin/python, jax 0.8.1"
    assert made.notes[-1].endswith("has jax and torch: measuring jax; --framework chooses")
    assert word_of(made.installed["mine"]) == B


def test_an_image_is_used_unchanged_and_the_chosen_framework_is_measured() -> None:
    made = existing("image:team/net:2", framework="torch")
    environment = made.matrix.environments["net-2"]
    assert (environment.image, environment.framework, made.options.selectors) == ("team/net:2", "torch", ["net-2"])
    assert made.notes == ("net-2: team/net:2, torch 0.8.1",)
    assert word_of(made.installed["net-2"]) == "image:team/net:2"


def test_without_such_words_the_matrix_stays_as_it_is() -> None:
    made = existing("torch-*")
    assert (made.matrix.as_is, made.installed, made.notes) == (frozenset(), {}, ())


@pytest.mark.parametrize(
    ("words", "typed", "chosen"),
    [
        ([A, "torch-1.0"], "auto", "venv"),
        ([A, B], "venv", "venv"),
        (["image:x"], "auto", "docker"),
        (["torch-1.0"], "auto", "auto"),
        (["torch-1.0"], "host", "host"),
        ([A], "podman", "podman"),  # which is refused later, as ever
    ],
)
def test_the_backend_is_the_one_that_measures_what_exists(words: list[str], typed: str, chosen: str) -> None:
    assert backend_for(Options(selectors=words, backend=typed)) == chosen


@pytest.mark.parametrize(
    ("words", "typed", "message", "hint"),
    [
        ([A], "docker", f"--backend docker cannot measure {A}", "--backend venv measures it"),
        ([A], "host", f"--backend host cannot measure {A}", "--backend venv measures it"),
        (["image:x"], "venv", "--backend venv cannot measure image:x:latest", "--backend docker measures it"),
        ([A, "image:x"], "auto", "cannot be measured in one run", "name python: alone, or image: alone"),
    ],
)
def test_a_backend_that_cannot_measure_it_is_refused(words: list[str], typed: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        backend_for(Options(selectors=words, backend=typed))
    assert message in caught.value.problems[0].message
    assert hint in (caught.value.problems[0].hint or "")


def test_the_host_is_a_matrix_of_one_environment() -> None:
    matrix = load(ROOT / "matrix.yaml")
    torch = Installed(python=sys.executable, framework="torch", release="2.13.0+cpu", python_version="3.11")
    matrix_of_host = host_matrix(matrix, torch, "laptop")
    assert list(matrix_of_host.environments) == ["laptop"]
    environment = matrix_of_host.environments["laptop"]
    assert (environment.framework, environment.release, environment.python) == ("torch", "2.13.0+cpu", "3.11")
    assert (matrix_of_host.workloads, matrix_of_host.measure) == (matrix.workloads, matrix.measure)
    heritage = Request(environments=("laptop",), preset="heritage")
    cases = {cell.case_id.partition("/")[0] for cell in selected_cells(matrix_of_host, heritage)}
    # Whatever the ids of the environments in the selectors of the preset.
    assert cases == set(matrix.workloads) - set(matrix.networks)
    assert list(matrix.environments) != ["laptop"]


@pytest.mark.parametrize("name", ["a-..", "np-1.", "A", "a" * 65, "a/b", "a\n"])
def test_an_environment_of_the_host_has_an_id_like_any_other(name: str) -> None:
    torch = Installed(python="/p", framework="torch", release="2.8.0", python_version="3.11")
    with pytest.raises(UsageError, match="cannot name an environment"):
        host_matrix(load(ROOT / "matrix.yaml"), torch, name)


@pytest.mark.parametrize(
    "answer", [{"release": "\x1b[2J"}, {"release": "x" * 5000}, {"python_version": "3"}, {"framework": "-e"}]
)
def test_an_interpreter_that_says_what_cannot_be_is_a_sentence(answer: dict[str, str]) -> None:
    facts: dict[str, Any] = {
        "python": "/p",
        "framework": "torch",
        "release": "2.8.0",
        "python_version": "3.11",
        **answer,
    }
    with pytest.raises(UsageError, match="says of itself what cannot be") as caught:
        host_matrix(load(ROOT / "matrix.yaml"), Installed(**facts), "host")
    assert str(caught.value).isprintable() or "\n" in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_choice_between_frameworks_is_announced_and_chosen() -> None:
    several = Installed(
        python="/p", framework="torch", release="2.8.0", python_version="3.11", others=("tensorflow", "jax")
    )
    note = choice_note(several, None)
    assert note == "/p has torch and tensorflow, jax: measuring torch; --framework chooses"
    assert choice_note(several, "torch") is None
    assert choice_note(replace(several, others=()), None) is None
