"""Errors in one environment's part of an example, which is measured beside another environment."""

from collections.abc import Mapping
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
    folder: Path, examples: Mapping[str, tuple[Mapping[str, Planted], str]]
) -> dict[str, dict[str, Any]]:
    """Return cell -> record, of a copy of an example for each error, in its base and where the error is.

    One run measures all of them, so the server of an environment starts once.

    Args:
        folder: an empty folder, to which the copies and the run are written.
        examples: file in examples/ -> its errors by their names, and the environment/variant without errors.
    """
    models, cells = [], []
    for file, (planted, base) in examples.items():
        source = (ROOT / "examples" / file).read_text("utf-8")
        for name, error in planted.items():
            assert source.count(error.text) == 1, (file, name)
            network = network_with(file, name)
            path = folder / f"{network}.py"
            path.write_text(source.replace(error.text, error.replacement), "utf-8")
            models += ["--model", str(path)]
            cells += [f"{program}/{network}/small/{error.phase}" for program in (base, error.program)]
    return records_of(folder, *cells, *models)


def network_with(file: str, name: str) -> str:
    """Return the name of the copy of an example that has an error."""
    return f"planted-{network_name(Path(file))}-{name}"


def assert_found(
    records: Mapping[str, dict[str, Any]], file: str, name: str, planted: Mapping[str, Planted], base: str
) -> None:
    """Assert that the environment with an error is wrong, for the right reason, and the base is not.

    Skips where the error was not planted, see ``chosen``.
    """
    error = planted[name]
    cell = f"{network_with(file, name)}/small/{error.phase}/fp32"
    if f"{error.program}/{cell}" not in records and not error.program.startswith("torch"):
        pytest.skip("--need slow plants errors in all frameworks")
    assert records[f"{base}/{cell}"].get("reason") is None
    record = records[f"{error.program}/{cell}"]
    assert (record["status"], record["class"]) == ("failed", "wrong-result")
    assert error.reason in record["reason"], record["reason"]
