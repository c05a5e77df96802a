"""Errors in one environment's part of an example, which is measured beside another environment."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runner.matrix.model_file import network_name
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


def require_images(config: pytest.Config) -> None:
    """Skip where the images of the frameworks are not to be built."""
    if not needs.given(config, "frameworks"):
        pytest.skip("--need frameworks builds the images")


def records_with_errors(
    folder: Path, example: str, planted: Mapping[str, Planted], base: str, *also: str
) -> dict[str, dict[str, Any]]:
    """Return cell -> record, of a copy of an example for each error, in ``base`` and where it is.

    Args:
        folder: an empty folder, to which the copies and the run are written.
        example: the file in examples/.
        planted: the errors, by their names.
        base: environment/variant without errors.
        also: further arguments of the run.
    """
    source = (ROOT / "examples" / example).read_text("utf-8")
    models, cells = [], []
    for name, error in planted.items():
        assert source.count(error.text) == 1, name
        path = folder / f"planted-{name}.py"
        path.write_text(source.replace(error.text, error.replacement), "utf-8")
        models += ["--model", str(path)]
        cells += [f"{program}/planted-{name}/small/{error.phase}" for program in (base, error.program)]
    return records_of(folder, *cells, *models, *also)


def records_in_one_run(
    request: pytest.FixtureRequest,
    folder: Path,
    example: str,
    environments: Iterable[str],
    planted: Mapping[str, Planted],
    base: str,
) -> dict[str, dict[str, Any]]:
    """Return what ``records_with_errors`` does of the errors that are ``chosen``, and the example in environments.

    Servers start once for both. Skips without ``--need frameworks``.
    """
    require_images(request.config)
    cells = [f"{name}/*/{network_name(Path(example))}/small/*" for name in environments]
    also = (*cells, "--model", str(ROOT / "examples" / example))
    return records_with_errors(folder, example, chosen(planted, request.config), base, *also)


def assert_agrees(records: Mapping[str, dict[str, Any]], cell: str) -> None:
    """Assert that an fp32 cell is right beside the NumPy of torch-1.12, in float64 too.

    Two environments of PyTorch have the state after training compared; other frameworks have one.
    """
    record = records[cell]
    assert (record["status"], record.get("reason")) == ("ok", None)
    check = record["facts"]["model_check"]
    assert (check["by"], check["base"], check["fp64"]) == ("weights", "NumPy in torch-1.12", True)
    assert ("state" in check["tolerance"]) == ("/train/" in cell and cell.startswith("torch"))


def assert_found(records: Mapping[str, dict[str, Any]], name: str, error: Planted, base: str) -> None:
    """Assert that the environment with an error is wrong, for the right reason, and the other one is not.

    Skips where the error was not planted, see ``chosen``.
    """
    cell = f"planted-{name}/small/{error.phase}/fp32"
    if f"{error.program}/{cell}" not in records and not error.program.startswith("torch"):
        pytest.skip("--need slow plants errors in all frameworks")
    assert records[f"{base}/{cell}"].get("reason") is None
    record = records[f"{error.program}/{cell}"]
    assert (record["status"], record["class"]) == ("failed", "wrong-result")
    assert error.reason in record["reason"], record["reason"]
