"""What is known of JAX and Torch7 beforehand, on a machine that has neither."""

import math
import sys
from typing import Any

import pytest

from runner.harness import adapters
from runner.harness.adapters import jax, torch7
from tests.support.networks import NETWORKS

NEWEST = (0, math.inf)


def lacks(case_id: str, device: str = "cpu", precision: str = "fp32", **changes: Any) -> Any:
    return jax.Scan.lacks({**NETWORKS[case_id], **changes}, NEWEST, device, precision)


def test_reading_the_classes_needs_no_jax() -> None:
    assert adapters.implementations("jax") == jax.IMPLEMENTATIONS
    assert "jax" not in sys.modules


def test_slugs_and_kinds() -> None:
    found = [(found.slug, found.kind, found.cells) for found in (*jax.IMPLEMENTATIONS, *torch7.IMPLEMENTATIONS)]
    assert found == [
        ("jax-scan", "flexible", ("lstm", "rnn", "relu", "gru")),
        ("matmul", "vendor", ()),
        ("conv2d", "vendor", ()),
        ("seq-lstm", "fused", ("lstm",)),
        ("seq-rnn", "flexible", ("rnn",)),
    ]


@pytest.mark.parametrize("case_id", NETWORKS)
def test_jax_computes_every_case_on_either_device(case_id: str) -> None:
    assert lacks(case_id) is None
    assert lacks(case_id, "cuda", "tf32") is None


def test_tf32_is_for_gpus() -> None:
    assert lacks("rnn-step/lstm-b32-h128", "cpu", "tf32")[0] == "precision-lacks"


def test_jax_has_no_original_program() -> None:
    assert lacks("rnn-step/lstm-b32-h128", protocol="published")[0] == "framework-lacks"


def test_jax_may_not_be_forked_after_its_import() -> None:
    assert jax.FORK_AFTER_IMPORT is False


@pytest.mark.parametrize("protocol", ["aligned", "published"])
@pytest.mark.parametrize(("slug", "case"), [("seq-lstm", "lstm-b32-h128"), ("seq-rnn", "rnn-b128-h1024")])
def test_no_image_of_torch7_can_be_measured(slug: str, case: str, protocol: str) -> None:
    found = next(found for found in torch7.IMPLEMENTATIONS if found.slug == slug)
    for device in ("cpu", "cuda"):
        code, reason = found.lacks({**NETWORKS[f"rnn-step/{case}"], "protocol": protocol}, (7,), device, "fp32")
        assert code == "image-unavailable"
        assert "Lua" in reason


@pytest.mark.parametrize("case_id", ["asr-lstm/1x320-ce-short", "lm-lstm/ptb-large"])
def test_torch7_is_there_for_rnn_step_alone(case_id: str) -> None:
    for found in torch7.IMPLEMENTATIONS:
        assert found.lacks(dict(NETWORKS[case_id]), (7,), "cuda", "fp32")[0] == "framework-lacks"


def test_a_run_that_is_forced_says_why_it_cannot_be() -> None:
    with pytest.raises(ImportError, match="Lua"):
        torch7.load(1)
