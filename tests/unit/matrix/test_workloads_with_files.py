"""Workloads of a matrix with a model file."""

from pathlib import Path

import pytest

from runner.core.errors import MatrixError
from runner.matrix import Matrix, load
from tests.support.model_files import write_model

MATRIX = """\
version: 1
workloads: {my-network: {file: models/my_network.py}}
environments: {np: {framework: numpy, release: "2.0", image: x}}
"""


def loaded(folder: Path, text: str = MATRIX) -> Matrix:
    (folder / "matrix.yaml").write_text(text)
    write_model(folder / "models")
    return load(folder / "matrix.yaml")


def message_of(folder: Path, text: str) -> str:
    with pytest.raises(MatrixError) as caught:
        loaded(folder, text)
    return str(caught.value).replace(f"{folder}/", "")


def test_a_workload_with_a_file_has_the_cases_of_the_file(tmp_path: Path) -> None:
    matrix = loaded(tmp_path)
    assert [name for name in matrix.cases if name.startswith("my-")] == ["my-network/small", "my-network/large"]
    assert matrix.networks["my-network"].path == tmp_path / "models" / "my_network.py"


def test_patterns_presets_and_rules_select_its_cases(tmp_path: Path) -> None:
    text = MATRIX.replace("network.py}", "network.py, cases: [sma*]}") + (
        "presets: {a: {select: [my-network/*, my-network/large/train]}}\n"
        "exclude: [{select: 'np/model/my-network/large/*', reason: x}]\n"
    )
    assert loaded(tmp_path, text).presets["a"].select[0].cases == ("my-network/*",)


MISTAKES = {
    "file: models/my_network.py": ("file: models/no.py", "matrix.yaml:2:32: error: there is no models/no.py"),
    "models/my_network.py": ("../x.py", "2:32: error: file must be the path of a file below the matrix file's folder"),
    "models/": ("", "there is no my_network.py"),
    "my-network:": ("My_Network:", "2:13: error: 'My_Network' cannot name a workload"),
    "{my-network": ("{rnn-step", "2:24: error: rnn-step is a workload of the program, so it takes no file"),
    "my-network: {file: models/my_network.py}": ("rnn-stp: {}", "hint: did you mean 'rnn-step'?"),
    "{file: models/my_network.py}": ("{}", "a network of yours needs file: and its model file"),
    "file:": ("fiel:", "hint: did you mean 'file'?"),
    "network.py}": ("network.py, cases: [smal]}", "error: no case of my-network matches 'smal'"),
    "models/my_network.py}": ("models}", "the model file models is a folder"),
}


@pytest.mark.parametrize("written", MISTAKES)
def test_a_mistake_of_a_workload_has_its_place(tmp_path: Path, written: str) -> None:
    instead, expected = MISTAKES[written]
    assert expected in message_of(tmp_path, MATRIX.replace(written, instead))


def test_mistakes_of_the_matrix_and_of_the_model_file_are_reported_together(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("TorchModel = None\n")
    message = message_of(tmp_path, MATRIX.replace("models/my_network.py", "bad.py") + "nightly: {base: [no-such]}\n")
    assert message.index("matrix.yaml:4:") < message.index("bad.py:1:1: error: bad.py has no class of a framework")


def test_commands_that_need_no_network_read_no_model_file(tmp_path: Path) -> None:
    (tmp_path / "matrix.yaml").write_text(MATRIX + "exclude: [{select: 'np/model/my-network/large/*', reason: x}]\n")
    assert not load(tmp_path / "matrix.yaml", networks=False).networks
