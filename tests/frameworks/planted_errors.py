"""Errors in one environment's part of an example, which is measured beside another environment."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.frameworks.one_round import ROOT, records_of
from tests.support import needs

NEW = '(numpy.__version__ > "2")'
"""In a model file: true in torch-2.x, tf-2.x and jax, and not in torch-1.12, whose NumPy makes the references."""


class Planted(NamedTuple):
    """An error.

    Attributes:
        program: environment/variant that has it.
        phase: of the cell that finds it.
        text: in the example, once.
        replacement: of the text; what is wrong in PyTorch is so by ``NEW``.
        reason: a part of what the record says.
    """

    program: str
    phase: str
    text: str
    replacement: str
    reason: str


def chosen(planted: Mapping[str, Planted], config: pytest.Config) -> dict[str, Planted]:
    """Return the errors that are planted: those in PyTorch, and with ``--need slow`` all of them."""
    all_of_them = needs.given(config, "slow")
    return {name: error for name, error in planted.items() if all_of_them or error.program.startswith("torch")}


def records_of_all(
    request: pytest.FixtureRequest, folder: Path, example: str, environments: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Return cell -> record, of the small size of an example in environments; skips without ``--need frameworks``."""
    require_images(request.config)
    cells = [f"{name}/*/{Path(example).stem}/small/*" for name in environments]
    return records_of(folder, *cells, "--model", str(ROOT / "examples" / example))


def records_with_chosen_errors(
    request: pytest.FixtureRequest, folder: Path, example: str, planted: Mapping[str, Planted], base: str
) -> dict[str, dict[str, Any]]:
    """Return what ``records_with_errors`` does, of the errors that are ``chosen``; skips as ``records_of_all``."""
    require_images(request.config)
    return records_with_errors(folder, example, chosen(planted, request.config), base)


def require_images(config: pytest.Config) -> None:
    """Skip where the images of the frameworks are not to be built."""
    if not needs.given(config, "frameworks"):
        pytest.skip("--need frameworks builds the images")


def records_with_errors(
    folder: Path, example: str, planted: Mapping[str, Planted], base: str
) -> dict[str, dict[str, Any]]:
    """Return cell -> record, of a copy of an example for each error, called like it, in ``base`` and where it is."""
    return records_of(folder, *copies(folder, example, planted, base))


def records_in_one_run(
    request: pytest.FixtureRequest,
    example: str,
    environments: Iterable[str],
    planted: Mapping[str, Planted],
    base: str,
) -> dict[str, dict[str, Any]]:
    """Return what ``records_of_all`` and ``records_with_chosen_errors`` do, together: servers start once."""
    require_images(request.config)
    folder = request.getfixturevalue("tmp_path_factory").mktemp(Path(example).stem)
    cells = [f"{name}/*/{Path(example).stem}/small/*" for name in environments]
    words = copies(folder, example, chosen(planted, request.config), base)
    return records_of(folder, *cells, *words, "--model", str(ROOT / "examples" / example))


def copies(folder: Path, example: str, planted: Mapping[str, Planted], base: str) -> list[str]:
    """Write a copy of an example for each error; return the cells to measure, and the options that name the copies."""
    source = (ROOT / "examples" / example).read_text("utf-8")
    models, cells = [], []
    for name, error in planted.items():
        assert source.count(error.text) == 1, name
        path = folder / f"{name}.py"
        path.write_text(source.replace(error.text, error.replacement), "utf-8")
        models += ["--model", str(path)]
        cells += [f"{program}/{name}/small/{error.phase}" for program in (base, error.program)]
    return [*cells, *models]


def assert_found(records: Mapping[str, dict[str, Any]], name: str, error: Planted, base: str) -> None:
    """Assert that the environment with an error is wrong, for the right reason, and the other one is not.

    Skips where the error was not planted, see ``chosen``.
    """
    if f"{error.program}/{name}/small/{error.phase}/fp32" not in records and not error.program.startswith("torch"):
        pytest.skip("--need slow plants errors in all frameworks")
    assert records[f"{base}/{name}/small/{error.phase}/fp32"].get("reason") is None
    record = records[f"{error.program}/{name}/small/{error.phase}/fp32"]
    assert (record["status"], record["class"]) == ("failed", "wrong-result")
    assert error.reason in record["reason"], record["reason"]
