"""Weights that follow from their names: the same in each environment, and only where a generator had drawn them."""

from typing import Any

import numpy as np
import pytest

from runner.harness.model import blob, drawn

FIRST = [-0.024704832583665848, 0.03919454291462898, -0.2954801917076111, 0.1501307189464569]
BUILT: dict[str, Any] = {
    "weight": np.random.RandomState(0).rand(50, 4).astype("float32"),
    "half": np.random.RandomState(1).rand(50, 4).astype("float16"),
    "bias": np.zeros(50, "float32"),
    "norm": np.ones(50, "float32"),
    "mask": np.tril(np.ones((8, 8), "float32")),
    "positions": np.arange(50),
}


def by_name(values: dict[str, Any], seed: int = 3) -> dict[str, Any]:
    return dict(drawn.of(list(values.items()), seed))


@pytest.mark.parametrize("name", ["bias", "norm", "mask", "positions"])
def test_what_no_generator_has_drawn_stays(name: str) -> None:
    assert (by_name(BUILT)[name] == BUILT[name]).all()


@pytest.mark.parametrize("name", ["weight", "half"])
def test_weights_follow_from_seed_name_and_shape_alone(name: str) -> None:
    made = by_name(BUILT)[name]
    assert (made.shape, made.dtype) == (BUILT[name].shape, BUILT[name].dtype)
    assert (by_name({name: BUILT[name] * 2 + 1})[name] == made).all()
    assert (by_name(BUILT, seed=4)[name] != made).any()
    assert (by_name({"other": BUILT[name]})["other"] != made).any()
    assert abs(made).max() <= 0.5  # 1/sqrt(4)
    assert abs(made).mean() == pytest.approx(0.25, abs=0.04)


def test_a_large_array_is_drawn_in_pieces_as_it_is_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = by_name(BUILT)["weight"]
    monkeypatch.setattr(drawn, "CHUNK", 7)
    assert (by_name(BUILT)["weight"] == expected).all()


def test_the_first_numbers_are_those_of_every_release_of_numpy() -> None:
    assert by_name(BUILT)["weight"][0].tolist() == FIRST


def test_it_is_needed_above_what_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob, "MAX_BYTES", 800)
    assert not drawn.is_needed([("weight", BUILT["weight"])])
    assert drawn.is_needed(list(BUILT.items()))
