"""What a night measures: its bases first, and the releases that the last night used."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.core.errors import UsageError
from runner.core.model import Request
from runner.releases import kept as releases
from runner.session.context import Context
from runner.watch.nightly.start import start, with_bases
from tests.unit.watch.nightly.test_floating import FOLDER, Engine, context, lock_text

BASE = "torch-1.13"


@pytest.fixture
def of(tmp_path: Path) -> Context:
    """A context of torch-2.x alone, below a folder with the locks of the matrix."""
    (tmp_path / "lock.txt").write_text(lock_text(torch="2.9.0", numpy="2.3.0"))
    (tmp_path / "old.txt").write_text(lock_text(torch="1.13.1"))
    return replace(context(tmp_path, Engine()), request=Request(environments=("torch-2.x",)))


def with_base_in_matrix(of: Context, *names: str) -> Context:
    nightly = of.matrix.nightly.model_copy(update={"base": names})
    return replace(of, matrix=of.matrix.model_copy(update={"nightly": nightly}))


def test_the_base_of_the_matrix_is_measured_first(of: Context) -> None:
    request = with_bases(with_base_in_matrix(of, BASE), None).request
    assert (request.bases, request.environments) == ((BASE,), (BASE, "torch-2.x"))
    assert with_bases(of, None).request == of.request


def test_the_command_line_decides_before_the_matrix(of: Context) -> None:
    assert with_bases(with_base_in_matrix(of, BASE), []).request.bases == ()
    assert with_bases(of, [BASE, BASE]).request.bases == (BASE,)


def test_a_base_of_another_framework_is_left_out(of: Context) -> None:
    jax = replace(of, request=replace(of.request, environments=("jax",)))
    assert with_bases(jax, [BASE]).request.environments == ("jax",)


@pytest.mark.parametrize(("name", "problem"), [("torch-9", "no environment"), ("torch-2.x", "follows a package")])
def test_an_environment_that_changes_is_no_base(of: Context, name: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        with_bases(of, [name])


def test_an_interpreter_has_no_base(of: Context) -> None:
    host = replace(of, request=replace(of.request, backend="host"))
    assert with_bases(with_base_in_matrix(host, BASE), None) == with_base_in_matrix(host, BASE)
    with pytest.raises(UsageError, match="--backend host"):
        with_bases(host, [BASE])


def test_a_night_starts_with_the_release_of_the_last_one(of: Context, tmp_path: Path) -> None:
    reports = of.settings.reports
    lock = releases.lock_of(reports, FOLDER, "2.9.1")
    lock.parent.mkdir(parents=True)
    lock.write_text(lock_text(torch="2.9.1"))
    assert specs_of(start(of)) == [("torch-2.x", tmp_path / "lock.txt")]
    releases.use(reports, FOLDER, "2.9.1", tmp_path / "lock.txt")
    night = start(with_bases(of, [BASE]))
    assert specs_of(night) == [(BASE, tmp_path / "old.txt"), ("torch-2.x", lock)]
    assert [each.environment for each in night.followed] == ["torch-2.x"]
    assert night.context.settings.locks == {"torch-2.x": lock}


def specs_of(night: Any) -> list[tuple[str, Path]]:
    return [(spec.environment, spec.lock) for spec in night.prepared.specs]


def test_an_excluded_environment_is_not_followed(of: Context) -> None:
    none = replace(of, request=replace(of.request, chosen=lambda cell: not cell.startswith("torch-2.x/")))
    both = replace(none, request=replace(none.request, environments=(BASE, "torch-2.x")))
    assert start(both).followed == ()
