"""The test of a network that a search is about, where the user names the network."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.core.errors import UsageError
from runner.search.bisect.model_cell import cell_of_model, environment_of_model, with_named_model
from runner.search.bisect.question import Ends, requested
from runner.session.options import Options

MATRIX = """\
version: 1
environments:
  np-old: {framework: numpy, release: "2.2.6", python: "3.11", requirements: [numpy==2.2.6]}
  tf-old: {framework: tensorflow, release: "2.18.0", python: "3.11", requirements: [tensorflow==2.18.0]}
  torch-old: {framework: torch, release: "2.1.2", python: "3.11", requirements: [torch==2.1.2]}
workloads:
  rnn-step: {cases: [rnn-b32-h128]}
"""
FORWARD = """\
class NumpyModel:
    def __init__(self, random):
        self.inputs = random.randn(4, 4)

    def forward(self):
        return self.inputs @ self.inputs
"""
TRAIN = """
    def train(self):
        return self.inputs.sum()
"""
CELL = "model/my-network/default/forward/fp32"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a matrix file, and a model file with a single test."""
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    (tmp_path / "my_network.py").write_text(FORWARD)
    return tmp_path


def options(folder: Path, *models: str, phase: Sequence[str] = ()) -> Options:
    return Options(
        matrix=folder / "matrix.yaml", model=[str(folder / model) for model in models], phase=[*phase], backend="venv"
    )


@pytest.mark.parametrize("ends", [("np-old", "2.4.6"), ("numpy==2.2.6", "numpy==2.4.6"), ("2.2.6", "2.4.6")])
def test_the_only_test_of_a_network(folder: Path, ends: tuple[str, str]) -> None:
    assert cell_of_model(options(folder, "my_network.py"), ends) == CELL


def test_a_package_may_vary_in_a_release_of_a_framework_that_the_matrix_lacks(folder: Path) -> None:
    without = "".join(line for line in MATRIX.splitlines(keepends=True) if "np-old" not in line)
    (folder / "matrix.yaml").write_text(without)
    assert cell_of_model(options(folder, "my_network.py"), ("0.65.0", "0.66.0"), "numpy==2.2.6") == CELL


def test_a_package_varies_in_the_only_environment_of_a_network(folder: Path) -> None:
    of_network = options(folder, "my_network.py")
    assert environment_of_model(of_network, "numba") == "np-old"
    (folder / "matrix.yaml").write_text(MATRIX.replace("framework: tensorflow", "framework: numpy"))
    with pytest.raises(UsageError, match="has 2 environments of numpy, and numba varies in one") as caught:
        environment_of_model(of_network, "numba")
    assert str(caught.value.problems[0].hint).endswith("--good numpy==VERSION,numba==VERSION")


@pytest.mark.parametrize("phase", ["forward", "train"])
def test_a_phase_chooses_among_the_tests_of_a_network(folder: Path, phase: str) -> None:
    (folder / "my_network.py").write_text(FORWARD + TRAIN)
    chosen = options(folder, "my_network.py", phase=[phase])
    assert cell_of_model(chosen, ("np-old", "2.4.6")) == CELL.replace("forward", phase)


def test_several_tests_are_refused_with_the_options_that_choose_one(folder: Path) -> None:
    (folder / "my_network.py").write_text(FORWARD + TRAIN)
    with pytest.raises(UsageError, match="has 2 tests, and one is measured") as caught:
        cell_of_model(options(folder, "my_network.py"), ("np-old", "2.4.6"))
    assert caught.value.problems[0].hint == "choose one: --phase forward or --phase train"


def test_tests_of_several_cases_are_refused_with_their_names(folder: Path) -> None:
    cases = ", ".join(f'"case-{number}": {{}}' for number in range(6))
    (folder / "my_network.py").write_text(f"CASES = {{{cases}}}\n\n\n{FORWARD}")
    with pytest.raises(UsageError, match="has 6 tests") as caught:
        cell_of_model(options(folder, "my_network.py"), ("np-old", "2.4.6"))
    assert "model/my-network/case-3/forward/fp32 and 2 others" in str(caught.value.problems[0].hint)


@pytest.mark.parametrize(
    ("ends", "message", "hint"),
    [
        (("tf-old", "2.20.0"), "has no class for tensorflow", "name ends of numpy"),
        (("jax==0.8.0", "jax==0.8.1"), "has no class for jax", "name ends of numpy"),
    ],
)
def test_ends_of_a_framework_that_the_file_has_not(
    folder: Path, ends: tuple[str, str], message: str, hint: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        cell_of_model(options(folder, "my_network.py"), ends)
    assert caught.value.problems[0].hint == hint


@pytest.mark.parametrize("good", ["0.8.0", "jax==0.8.0"])
def test_a_framework_that_the_matrix_lacks_names_the_command_that_writes_one(folder: Path, good: str) -> None:
    (folder / "my_network.py").write_text(FORWARD.replace("NumpyModel", "JaxModel"))
    with pytest.raises(UsageError, match="the matrix has no environment of jax") as caught:
        cell_of_model(options(folder, "my_network.py"), (good, "0.8.1"))
    assert "`runner init jax==0.8.0 jax==0.8.1 --model FILE`" in str(caught.value.problems[0].hint)


def test_a_phase_that_the_network_has_not(folder: Path) -> None:
    with pytest.raises(UsageError, match="has no test of the phase train"):
        cell_of_model(options(folder, "my_network.py", phase=["train"]), ("np-old", "2.4.6"))


def test_several_networks_are_refused(folder: Path) -> None:
    (folder / "other.py").write_text(FORWARD)
    with pytest.raises(UsageError, match="names several networks"):
        cell_of_model(options(folder, "my_network.py", "other.py"), ("np-old", "2.4.6"))


@pytest.mark.parametrize("text", ["nets.py", "folder/nets.py:UNet(3)", "small=nets.py:UNet", "timm:resnet18"])
def test_a_network_in_place_of_a_test(text: str) -> None:
    named = with_named_model(Options(selectors=[text]))
    assert (named.model, named.selectors) == ([text], None)


@pytest.mark.parametrize("text", [CELL, f"np-old/{CELL}", ""])
def test_a_test_is_no_network(text: str) -> None:
    assert with_named_model(Options(selectors=[text])) == Options(selectors=[text])


def test_the_question_is_that_of_the_test(folder: Path) -> None:
    ends = Ends(good="np-old", bad="numpy==2.4.6")
    by_model = Options(matrix=folder / "matrix.yaml", selectors=[str(folder / "my_network.py")], backend="venv")
    by_phase = options(folder, "my_network.py", phase=["forward"])
    by_test = Options(
        matrix=folder / "matrix.yaml", selectors=[CELL], model=[str(folder / "my_network.py")], backend="venv"
    )
    questions = [requested(each, ends)[1] for each in (by_model, by_phase, by_test)]
    assert questions[0].cell == CELL
    assert questions[0] == questions[1] == questions[2]
