"""The model files of examples/ and of the page on them are read without a mistake."""

import re
from pathlib import Path

import pytest

from runner.matrix import load
from runner.matrix.model_file import read_network

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGE = ROOT / "docs" / "how-to" / "measure-your-network.md"
"""Each network of the preset has a class for them."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_model_file(path: Path) -> None:
    network = read_network(path)
    assert {"train", "backward"} & set(network.methods["torch"])
    assert list(network.files.files) == [path.name]


def test_the_networks_of_the_preset_have_every_framework_and_the_same_weights() -> None:
    matrix = load(ROOT / "matrix.yaml")
    cases = [case for selector in matrix.presets["networks"].select for case in selector.cases]
    assert {case.partition("/")[0] for case in cases} == set(matrix.networks)
    for network in matrix.networks.values():
        of_numpy = set(network.classes) & {"numpy"}  # its program is the reference
        assert {"torch", "tensorflow", "jax"} <= set(network.classes)
        assert set(network.takes_weights) == set(network.takes_precision) | of_numpy == set(network.classes)


def test_the_smallest_file_is_small_and_the_page_shows_it() -> None:
    source = (ROOT / "examples" / "smallest.py").read_text("utf-8")
    assert len(source.splitlines()) < 20
    assert (
        f"```python\n{source.partition('import torch')[1]}{source.partition('import torch')[2]}```"
        in PAGE.read_text("utf-8")
    )


def test_the_files_of_the_page_are_model_files(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    complete = [
        block for block in blocks if re.search(r"^class \w+Model", block, re.MULTILINE) and "...\n" not in block
    ]
    assert len(complete) == 6
    for number, block in enumerate(complete):
        path = tmp_path / f"file_{number}.py"
        path.write_text(block, "utf-8")
        assert read_network(path).classes
