"""``VARIANTS`` of a model file: which there are, in which releases, and what is wrong with them."""

from pathlib import Path

import pytest

from runner.matrix.model_file import read_network
from runner.matrix.model_file.variants import NetworkVariant, parse_variant
from tests.support.model_files import check_mistake, write_model

CLASS = "class {}:\n    def __init__(self, variant): ...\n    def forward(self): ...\n"
TORCH, JAX = CLASS.format("TorchModel"), CLASS.format("JaxModel")

TEXTS = {
    "eager": NetworkVariant(name="eager"),
    "compile-max-autotune>=2.1": NetworkVariant(name="compile-max-autotune", since=(2, 1)),
    "old<1.13": NetworkVariant(name="old", before=(1, 13)),
    "some >= 1.1, < 2": NetworkVariant(name="some", since=(1, 1), before=(2,)),
    "Eager": None,
    "a b": None,
    "a" * 41: None,
    "a>": None,
    "a>=1,": None,
    "a>=1,>=2": None,
    "a==1": None,
    "a>=1.0rc1": None,
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_variant_is_a_name_and_the_releases_that_have_it(text: str) -> None:
    assert parse_variant(text) == TEXTS[text]


def test_each_framework_has_its_variants_and_they_come_back_from_a_stored_plan(tmp_path: Path) -> None:
    source = f'VARIANTS = {{"torch": ["eager", "compile>=2.0"]}}\n{TORCH}{JAX.replace("variant", "random")}'
    network = read_network(write_model(tmp_path, source))
    assert network.variants == {"torch": (TEXTS["eager"], NetworkVariant(name="compile", since=(2, 0)))}
    stored = network.specs("net")["net/default"]["variants"]
    assert stored == {
        "torch": [
            {"name": "eager", "since": [], "before": []},
            {"name": "compile", "since": [2, 0], "before": []},
        ]
    }
    assert tuple(map(NetworkVariant.of, stored["torch"])) == network.variants["torch"]


def test_without_variants_a_size_may_have_the_name(tmp_path: Path) -> None:
    network = read_network(write_model(tmp_path, f'CASES = {{"a": {{"variant": 1}}}}\n{TORCH}'))
    assert network.variants == {}


MISTAKES = {
    f'VARIANTS = ["eager"]\n{TORCH}': ("1:12", "VARIANTS must be a dictionary in braces", "VARIANTS = {"),
    f"VARIANTS = {{}}\n{TORCH}": ("1:12", "VARIANTS is empty", "VARIANTS = {"),
    f'VARIANTS = {{"torhc": ["a"]}}\n{TORCH}': ("1:13", "there is no framework 'torhc'", "did you mean 'torch'?"),
    f'VARIANTS = {{"torch": "a"}}\n{TORCH}': ("1:22", "the variants of 'torch' must be a list of names", "VARIANTS ="),
    f'VARIANTS = {{"torch": []}}\n{TORCH}': ("1:22", "the variants of 'torch' must be a list of names", "VARIANTS ="),
    f'VARIANTS = {{"torch": ["A"]}}\n{TORCH}': ("1:23", "'A' is not a variant", "small letters, then digits"),
    f'VARIANTS = {{"torch": [1]}}\n{TORCH}': ("1:23", "'1' is not a variant", "small letters, then digits"),
    f'VARIANTS = {{"torch": [name()]}}\n{TORCH}': ("1:23", "this is not a plain value", "write the value out"),
    f'VARIANTS = {{"torch": ["a", "a>=2"]}}\n{TORCH}': (
        "1:28",
        "'torch' has the variant 'a' twice",
        "remove one of them",
    ),
    f'VARIANTS = {{"torch": ["a"], "jax": ["jit"]}}\n{TORCH}': (
        "1:29",
        "VARIANTS names variants of 'jax', and my_network.py has no JaxModel",
        "add `class JaxModel:`, or remove 'jax'",
    ),
    f'VARIANTS = {{"torch": ["a"]}}\n{TORCH.replace("variant", "random")}': (
        "1:13",
        "TorchModel has no parameter 'variant', which VARIANTS gives",
        "add the parameter 'variant' to TorchModel",
    ),
    f'VARIANTS = {{"torch": ["a"]}}\n{TORCH}{JAX}': (
        "5:7",
        "JaxModel needs the parameter 'variant', and VARIANTS gives none",
        'add VARIANTS = {"jax": ["eager"]}, the names of its variants',
    ),
    f'VARIANTS = {{"torch": ["a"]}}\nCASES = {{"a": {{"variant": 1}}}}\n{TORCH}': (
        "2:16",
        "'variant' is given by the program, so no case can have it",
        "rename the size",
    ),
}


@pytest.mark.parametrize("source", MISTAKES)
def test_a_mistake_has_a_place_a_sentence_and_a_hint(tmp_path: Path, source: str) -> None:
    check_mistake(write_model(tmp_path, source), *MISTAKES[source])
