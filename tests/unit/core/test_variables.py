"""Which variables an environment may have, and that all that the backends and the harness set are refused."""

import ast
from pathlib import Path

import pytest

from runner.backends.docker.options import Container
from runner.backends.visible_devices import in_container, in_process
from runner.core.model import Limits
from runner.core.variables import content_digest, digest_with, is_name, refusal
from runner.harness import compile_cache, server, variables

HARNESS = Path(server.__file__).parent
LEFT_TO_THE_USER = {"THEANO_FLAGS", "TF_CPP_MIN_LOG_LEVEL"}
"""Variables that the harness completes, or sets where nobody has."""


@pytest.mark.parametrize(
    "name", ["OMP_NUM_THREADS", "XLA_FLAGS", "LD_PRELOAD", "TF_ENABLE_ONEDNN_OPTS", "NVIDIA_TF32_OVERRIDE"]
)
def test_what_experiments_hinge_on_can_be_set(name: str) -> None:
    assert refusal(name) == ""


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONHASHSEED", "PATH", "CUDA_VISIBLE_DEVICES"])
def test_what_the_runner_needs_cannot(name: str) -> None:
    assert refusal(name)


def test_all_that_a_container_is_given_is_refused() -> None:
    spec = Container(name="n", image="sha256:" + "ab" * 32, python="python3", limits=Limits(memory=1), owner="h:b:1:2")
    given = {*spec.options()["environment"], *in_process("GPU-1"), *in_container("GPU-1", "uuid")}
    assert {name for name in given if not refusal(name)} == set()


def assigned(source: str) -> set[str]:
    """Return the names of variables that some code of the harness writes as texts, ``os.environ["NAME"] = ...``."""
    return {
        str(target.slice.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Subscript)
        and ast.unparse(target.value) == "os.environ"
        and isinstance(target.slice, ast.Constant)
    }


def test_all_that_the_harness_sets_without_asking_is_refused() -> None:
    named = {name for path in HARNESS.rglob("*.py") for name in assigned(path.read_text("utf-8"))}
    assert {"KERAS_BACKEND", "NPROC"} <= named
    lists = {*compile_cache.FOLDER_VARIABLES, *server.FORK_SAFE_CHECKS}
    assert {name for name in named | lists if not refusal(name)} - LEFT_TO_THE_USER == set()


def test_thread_counts_of_libraries_are_the_user_s_where_he_sets_them() -> None:
    assert not any(map(refusal, variables.THREADS))


def test_names() -> None:
    assert [text for text in ("_a9", "A", "9A", "", "A-B", "Ä", "A" * 101) if is_name(text)] == ["_a9", "A"]


def test_a_digest_depends_on_variables_and_not_on_their_order() -> None:
    digest = digest_with("sha256:ab", {"A": "1", "B": "2"})
    assert digest == digest_with("sha256:ab", {"B": "2", "A": "1"}) != digest_with("sha256:ab", {"A": "1", "B": "3"})
    assert content_digest(digest) == content_digest("sha256:ab") == "sha256:ab"
