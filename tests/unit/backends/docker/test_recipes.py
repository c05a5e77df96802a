"""What the image of an environment is built from: Python, or the image of the environment that it extends."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from runner.backends.docker.recipes import EXTENDED, Recipes
from runner.core.model import Spec

ROOT = Path(__file__).parents[4]
HASH = f"--hash=sha256:{'ab' * 32}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the shipped Dockerfiles and two locks."""
    folder = tmp_path / "docker"
    folder.mkdir()
    for path in (ROOT / "docker").glob("*.Dockerfile"):
        shutil.copy(path, folder)
    (tmp_path / "np.txt").write_text(f"numpy==2.0 {HASH}\n")
    (tmp_path / "more.txt").write_text(f"numpy==2.0 {HASH}\nscipy==1.14 {HASH}\n")
    return folder


def extended(folder: Path) -> Spec:
    below = Spec(environment="np", framework="numpy", release="2", base="python:3.11", lock=folder / "np.txt")
    return replace(below, environment="np-more", lock=folder / "more.txt", extends=below, added=("scipy",))


def test_an_extended_environment_is_built_on_the_image_of_the_other(project: Path) -> None:
    recipes, spec = Recipes(project), extended(project.parent)
    assert spec.extends is not None
    below, recipe = recipes.recipe(spec.extends, "sha256:aa"), recipes.recipe(spec, "sha256:aa")
    assert below is not None
    assert recipe is not None
    assert (recipe.base, recipe.added) == (below.tag, ("scipy",))
    assert b"${ADDED}" in recipe.dockerfile
    assert recipes.source(spec) == "python:3.11"
    assert recipes.recipe(spec, None) is None


def test_its_name_changes_with_that_of_the_other(project: Path) -> None:
    recipes, spec = Recipes(project), extended(project.parent)
    before = recipes.named(spec).tag
    (project.parent / "np.txt").write_text(f"numpy==2.1 {HASH}\n")
    assert recipes.named(spec).tag != before


def test_what_a_project_lacks_comes_with_the_program(project: Path) -> None:
    before = Recipes(project).named(extended(project.parent))
    for name in (EXTENDED, "numpy.Dockerfile"):
        (project / name).unlink()
    assert Recipes(project).named(extended(project.parent)) == before


def test_a_dockerfile_of_the_project_wins(project: Path) -> None:
    (project / EXTENDED).write_text("FROM scratch\n")
    assert Recipes(project).named(extended(project.parent)).dockerfile == b"FROM scratch\n"


def test_an_image_as_it_is_is_not_the_one_that_the_project_pins(project: Path) -> None:
    digest = f"sha256:{'ab' * 32}"
    (project / "pins.toml").write_text(f'[images]\n"team/net:1" = "{digest}"\n')
    spec = Spec(environment="net", framework="numpy", release="2", image="team/net:1")
    assert Recipes(project).source(spec).endswith(f"@{digest}")
    assert Recipes(project).source(replace(spec, interpreter="python3")) == "team/net:1"


def test_a_lock_with_overrides_is_installed_as_it_is(project: Path) -> None:
    spec = Spec(environment="np", framework="numpy", release="2", base="python:3.11", lock=project.parent / "np.txt")
    before = Recipes(project).named(spec)
    (project.parent / "np.txt").write_text(f"# made\n# overrides: numpy==2.0\nnumpy==2.0 {HASH}\n")
    recipe = Recipes(project).named(spec)
    assert b"-m pip install --require-hashes --no-deps " in recipe.dockerfile
    assert b"--no-deps" not in before.dockerfile
    assert recipe.tag != before.tag
