"""Limits where rounding or random numbers decide: what the base shows by itself, and no less than the tolerance."""

from typing import Any

import numpy as np

from runner.harness.model import allowed as typed
from runner.harness.model import trained

allowed: Any = typed


def test_another_seed_is_rarely_outside_of_what_some_seeds_show() -> None:
    random = np.random.RandomState(0)
    for size, share in ((1, 1e-3), (16, 1e-3), (256, 1e-3)):
        numbers = random.randn(4000, allowed.SEEDS + 2, size)
        distances = np.sqrt(((numbers[:, 1:] - numbers[:, :1]) ** 2).sum(2))
        limits = np.array([allowed.reach(list(seen)) for seen in distances[:, :-1]])
        assert (distances[:, -1] > limits).mean() <= share
        assert np.median(limits / distances[:, -1]) < {1: 20.0, 16: 4.0, 256: 2.0}[size]


def test_a_limit_is_never_below_the_default_nor_infinite() -> None:
    widened = allowed.Allowed()
    widened.widen({("state", "a"): 1e-6, ("state", "b"): 1e-3, ("losses", "1"): float("inf")}, lambda _: 1e-3, 20)
    assert widened.wider == {"state": {"b": 2e-2}, "losses": {"1": trained.UNLIMITED}}
    assert widened.of("state", "a", 1e-3) == 1e-3
    assert widened.of("state", "b", 1e-3) == 2e-2
    widened.widen({("state", "b"): 1e-2}, lambda _: 1e-3)
    assert widened.wider["state"]["b"] == 2e-2
    assert allowed.reach([1.0, float("inf")]) == trained.UNLIMITED


def test_losses_and_outputs_are_named_before_a_state() -> None:
    assert allowed.in_words([("losses", "1"), ("outputs", "logits"), ("state", "a")]) == (
        "the loss of step 1 and output 'logits'"
    )
    assert allowed.in_words([("state", "a"), ("trained", "")]) == "the state after the steps"
