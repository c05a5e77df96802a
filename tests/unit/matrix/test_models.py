"""What the models accept, what they fill in, and what their schema says."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from runner.matrix import (
    WORKLOADS,
    Environment,
    Exclude,
    Matrix,
    Measure,
    Preset,
    Selector,
    Variant,
    WorkloadChoice,
    schema,
)

ROOT = Path(__file__).parents[3]


def environment(**keys: Any) -> Environment:
    return Environment.model_validate({"framework": "torch", "release": "1.0.0"} | keys)


def test_nothing_can_be_changed() -> None:
    made = environment(image="x")
    with pytest.raises(ValidationError, match="frozen"):
        made.image = "y"


def test_lists_become_tuples() -> None:
    assert environment(python="3.6", requirements=["torch", "numpy"]).requirements == ("torch", "numpy")


def test_an_environment_without_variants_is_its_own_variant_on_either_device() -> None:
    made = environment(python="3.6", lock="a.txt", cuda="9.0")
    expected = Variant(base="python:3.6-slim", lock="a.txt", cuda="9.0")
    assert made.variant("cpu") == expected
    assert made.variant("cuda") == expected


def test_a_variant_is_found_by_its_device_and_none_where_there_is_no_such() -> None:
    made = environment(python="3.11", variants={"cpu": {"lock": "cpu.txt"}})
    assert made.variant("cpu") == Variant(base="python:3.11-slim", lock="cpu.txt")
    assert made.variant("cuda") is None


def test_a_base_that_is_given_stays() -> None:
    variant = environment(python="3.11", variants={"cpu": {"base": "python:3.11", "lock": "a"}}).variant("cpu")
    assert variant == Variant(base="python:3.11", lock="a")


def test_an_image_to_pull_has_no_base() -> None:
    assert environment(image="x", cuda="9.0").variant("cuda") == Variant(image="x", cuda="9.0")


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({}, "needs an image, or a python and what to install"),
        ({"python": "3.6"}, "does not say what to install"),
        ({"python": "3.6", "variants": {}}, "does not say what to install"),
        ({"image": "x", "lock": "a.txt"}, "has both an image and a lock"),
        ({"image": "x", "variants": {"cpu": {}}}, "has both an image and variants"),
        ({"python": "3.6", "cuda": "9.0", "variants": {"cpu": {}}}, "has variants, and cuda outside of them"),
        ({"python": "3.6", "lock": "a", "find_links": "x"}, "must be an http:// or https:// address"),
        ({"image": "x", "download_bytes": 1.5}, "valid integer"),
        ({"image": "x", "python": "3.6.5"}, "pattern"),
    ],
)
def test_an_environment_that_cannot_be_made_is_refused(keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        environment(**keys)


@pytest.mark.parametrize("name", ["torch-0.4", "torch-2.x", "tf-1.8", "host", "torch7"])
def test_ids_are_small_letters_with_parts_after_dashes(name: str) -> None:
    assert name in matrix(environments={name: {"framework": "torch", "release": "1", "image": "x"}}).environments


@pytest.mark.parametrize("name", ["", "Torch", "1.0", "torch_1", "torch-", "torch-1.0\n", "a/b", "torch 1"])
def test_other_ids_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        matrix(environments={name: {"framework": "torch", "release": "1", "image": "x"}})


def matrix(**keys: Any) -> Matrix:
    return Matrix.model_validate({"version": 1, "environments": {}, "workloads": {}} | keys)


@pytest.mark.parametrize("version", [True, 1.0, "1", 2, None])
def test_only_the_number_one_is_version_one(version: object) -> None:
    with pytest.raises(ValidationError):
        matrix(version=version)


def test_what_is_left_out_has_the_documented_value() -> None:
    made = matrix()
    assert made.measure == Measure(rounds=3, seconds=2.0, timeout=600.0, threads=None, margin=0.02, restart=1)
    assert made.gpu.clocks == "base"
    assert (made.presets, made.exclude) == ({}, ())
    assert WorkloadChoice() == WorkloadChoice(cases=("*",), phases=("forward", "train"), precisions=("fp32",))
    every = (Selector(cases=("*",)),)
    assert Preset(select=every) == Preset(select=every, rounds=3, seconds=2.0, phases=None)
    assert Preset.model_validate({"select": ["*"]}) == Preset(select=every)


@pytest.mark.parametrize("clocks", ["base", "max", "leave", 1_095])
def test_clocks_are_a_word_or_megahertz(clocks: object) -> None:
    assert matrix(gpu={"clocks": clocks}).gpu.clocks == clocks


@pytest.mark.parametrize("clocks", ["boost", "none", 0, True, 1.5])
def test_other_clocks_are_refused(clocks: object) -> None:
    with pytest.raises(ValidationError):
        matrix(gpu={"clocks": clocks})


def test_exclusions_keep_their_reason() -> None:
    made = matrix(exclude=[{"select": "tf-*/*", "reason": "too slow"}])
    assert made.exclude == (Exclude(select="tf-*/*", reason="too slow"),)


def properties(node: dict[str, Any]) -> set[str]:
    return set(node["properties"])


def test_the_schema_names_every_key_of_the_shipped_matrix() -> None:
    made, written = schema(), yaml.safe_load((ROOT / "matrix.yaml").read_text(encoding="utf-8"))
    parts = made["$defs"]
    assert set(written) <= properties(made)
    for entry in written["environments"].values():
        assert set(entry) <= properties(parts["Environment"])
        for variant in entry.get("variants", {}).values():
            assert set(variant) <= properties(parts["Variant"])
    for choice in written["workloads"].values():
        assert set(choice) <= properties(parts["WorkloadChoice"])
    for preset in written["presets"].values():
        assert set(preset) <= properties(parts["Preset"])


def test_the_schema_refuses_unknown_keys_and_describes_each_known_one() -> None:
    made = schema()
    assert made["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert made["title"] == "matrix.yaml"
    assert "$id" not in made
    for part in (made, *made["$defs"].values()):
        assert part["additionalProperties"] is False
        assert part["description"]
        assert all(entry.get("description") for entry in part["properties"].values())


def test_the_schema_lists_the_workloads() -> None:
    shipped, networks = schema()["properties"]["workloads"]["propertyNames"]["anyOf"]
    assert shipped == {"enum": list(WORKLOADS)}
    assert re.search(networks["pattern"], "my-network")
    assert not re.search(networks["pattern"], "My_Network")
