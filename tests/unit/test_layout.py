"""The tests of a package stand in its folder, and each file of tests names what it tests."""

from pathlib import Path

import pytest

UNIT = Path(__file__).parent
RUNNER = UNIT.parents[1] / "runner"
OTHERS = {"benchmarks"}
"""Folders of tests of what is not in ``runner``."""


def names_in(package: Path) -> set[str]:
    """Return the names of a package, its folders and its modules."""
    paths = [package, *package.rglob("*")]
    return {path.stem for path in paths if path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists())}


@pytest.mark.parametrize(
    "folder", sorted(path for path in UNIT.iterdir() if path.is_dir() and path.name not in {*OTHERS, "__pycache__"})
)
def test_each_file_names_a_module_or_a_folder_of_its_package(folder: Path) -> None:
    """``test_lock.py`` and ``test_lock_of_old_releases.py`` test the module or folder ``lock``."""
    assert (RUNNER / folder.name / "__init__.py").exists()
    for path in folder.rglob("test_*.py"):
        names = names_in(RUNNER / path.parent.relative_to(UNIT))
        tested = path.stem.removeprefix("test_")
        hint = f"rename it to test_NAME.py or test_NAME_ASPECT.py; NAME is one of {', '.join(sorted(names))}"
        assert any(f"{tested}_".startswith(f"{name}_") for name in names), f"{path.relative_to(UNIT)}: {hint}"


def test_no_folder_of_tests_is_left_over_from_a_package() -> None:
    folders = {path.parent.relative_to(UNIT) for path in UNIT.rglob("test_*.py")}
    assert all((RUNNER / folder).is_dir() for folder in folders if folder.parts[:1] != ("benchmarks",))
