"""``PHASES`` of a model file: methods that are timed beside ``forward`` and ``train``, and what is wrong with them."""

from pathlib import Path

import pytest

from runner.harness.adapters import user_model
from runner.matrix.model_file import read_network
from runner.matrix.model_file.methods import OUTPUTS
from tests.support.model_files import check_mistake, write_model

TORCH = "class TorchModel:\n    def prefill(self): ...\n    def train(self): ...\n"
JAX = "class JaxModel:\n    def forward(self): ...\n    def decode(self): ...\n"


def test_the_harness_calls_the_method_that_is_checked_here() -> None:
    assert OUTPUTS == user_model.OUTPUTS


def test_a_class_has_the_phases_whose_methods_it_has(tmp_path: Path) -> None:
    network = read_network(write_model(tmp_path, f'PHASES = ["prefill", "decode"]\n{TORCH}{JAX}'))
    assert network.own_phases == ("prefill", "decode")
    assert network.methods == {"torch": ("train", "prefill"), "jax": ("forward", "decode")}
    assert network.timed == ("forward", "train", "prefill", "decode")
    assert network.phases == ("compile", "compile-warm", *network.timed)


def test_a_class_that_is_not_looked_into_may_have_them_all(tmp_path: Path) -> None:
    source = "from elsewhere import Net as TorchModel\nPHASES = ('decode',)"
    assert read_network(write_model(tmp_path, source)).methods == {"torch": ("forward", "train", "decode")}


def test_a_class_needs_no_other_method(tmp_path: Path) -> None:
    source = 'PHASES = ["decode"]\nclass TorchModel:\n    def decode(self): ...'
    assert read_network(write_model(tmp_path, source)).timed == ("decode",)


MISTAKES = {
    f"PHASES = 'prefill'\n{TORCH}": ("1:10", "PHASES must be a list of names of methods", "PHASES = ["),
    f"PHASES = []\n{TORCH}": ("1:10", "PHASES must be a list of names of methods", "PHASES = ["),
    f"PHASES = [1]\n{TORCH}": ("1:11", "a phase must be the name of a method in quotes", "PHASES = ["),
    f"PHASES = [name()]\n{TORCH}": ("1:11", "this is not a plain value", "write the value out"),
    f"PHASES = ['prefill', 'prefill']\n{TORCH}": ("1:22", "PHASES has 'prefill' twice", "remove one of them"),
    f"PHASES = ['train']\n{TORCH}": (
        "1:11",
        "'train' is a phase of every class that has train()",
        "remove it: train()",
    ),
    f"PHASES = ['gradient']\n{TORCH}": ("1:11", "'gradient' has another meaning", "rename the phase and its method"),
    f"PHASES = ['state']\n{TORCH}": ("1:11", "'state' has another meaning", "rename the phase and its method"),
    f"PHASES = ['prefill_outputs']\n{TORCH}": (
        "1:11",
        "'prefill_outputs' gives what is compared of the phase 'prefill'",
        "rename the phase and its method",
    ),
    f"PHASES = ['Pre-fill']\n{TORCH}": ("1:11", "'Pre-fill' cannot name a phase", "use the name of a method"),
    f"PHASES = ['prefill']\n{TORCH}    def prefill_outputs(self, layer): ...\n": (
        "5:9",
        "TorchModel.prefill_outputs() needs the parameter 'layer'",
        "rename it: a method of this name",
    ),
    f"PHASES = ['compile_it']\n{TORCH}": ("1:11", "'compile_it' cannot name a phase", "use the name of a method"),
    f"PHASES = ['decode']\n{TORCH}": (
        "1:11",
        "no class has decode(), which PHASES names",
        "add `def decode(self)`, which returns the outputs, to TorchModel",
    ),
    f"PHASES = ['prefil']\n{TORCH}": (
        "1:11",
        "no class has prefil(), which PHASES names",
        "rename prefill() to prefil(), or the phase to 'prefill'",
    ),
    f"PHASES = ['prefill']\n{TORCH.replace('prefill(self)', 'prefill(self, text)')}": (
        "3:9",
        "TorchModel.prefill() needs the parameter 'text', and is called without it",
        "write `def prefill(self)`, and keep the data on the object",
    ),
}


@pytest.mark.parametrize("source", MISTAKES)
def test_a_mistake_has_a_place_a_sentence_and_a_hint(tmp_path: Path, source: str) -> None:
    check_mistake(write_model(tmp_path, source), *MISTAKES[source])
