"""What the JAX and Torch7 implementations declare, on a machine that has neither."""

import math
import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from runner.harness import adapters
from runner.harness.adapters import jax, torch7
from runner.harness.adapters.jax.cudnn import CudnnLSTM
from runner.harness.adapters.jax.scan import Scan
from tests.support.networks import NETWORKS

NEWEST = (0, math.inf)


def lacks(case_id: str, device: str = "cpu", precision: str = "fp32", **changes: Any) -> Any:
    return Scan.lacks({**NETWORKS[case_id], **changes}, NEWEST, device, precision)


def test_reading_the_classes_needs_no_jax() -> None:
    assert adapters.implementations("jax") == jax.IMPLEMENTATIONS
    assert "jax" not in sys.modules


def test_jax_is_imported_without_optax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPROC", "1")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "")
    monkeypatch.setenv("JAX_THREEFRY_PARTITIONABLE", "")
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(__version__="0.4.31"))
    assert jax.optax_version() is None
    assert jax.load(2) == "0.4.31"
    assert os.environ["JAX_THREEFRY_PARTITIONABLE"] == "true"  # 0.5 draws other bits from a key without it
    assert Scan.packages == ("optax",)
    assert [each.slug for each in jax.IMPLEMENTATIONS if each.packages] == ["jax-scan", "jax-cudnn-lstm"]


def test_a_wheel_without_a_commit_leaves_that_of_jaxlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax.version", SimpleNamespace(_git_hash=None))  # 0.4.31
    monkeypatch.setitem(sys.modules, "jaxlib.version", SimpleNamespace(_git_hash="7fd93027"))
    assert jax.source_revisions() == {"jaxlib_revision": "7fd93027"}
    monkeypatch.setitem(sys.modules, "jaxlib.version", SimpleNamespace())  # 0.4.13
    assert jax.source_revisions() == {}


@pytest.mark.parametrize("module", [jax, torch7])
def test_slugs_are_unique_and_kinds_are_known(module: Any) -> None:
    slugs = [implementation.slug for implementation in module.IMPLEMENTATIONS]
    assert len(set(slugs)) == len(slugs)
    assert {implementation.kind for implementation in module.IMPLEMENTATIONS} <= {"flexible", "fused", "vendor"}


@pytest.mark.parametrize("case_id", NETWORKS)
def test_jax_computes_every_case_on_either_device(case_id: str) -> None:
    assert lacks(case_id) is None
    assert lacks(case_id, "cuda", "tf32") is None


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
@pytest.mark.parametrize("case_id", NETWORKS)
def test_jax_computes_every_case_in_16_bits_on_either_device(case_id: str, precision: str) -> None:
    for device in ("cpu", "cuda"):
        assert lacks(case_id, device, precision) is None


def test_cudnn_s_lstm_needs_a_gpu_and_has_no_16_bits() -> None:
    lstm, gru = ({**NETWORKS[f"rnn-step/{cell}-b32-h128"]} for cell in ("lstm", "gru"))
    skip: Any = CudnnLSTM.lacks
    assert skip(lstm, NEWEST, "cpu", "fp32") == ("needs-gpu", "jax-cudnn-lstm has no CPU kernel")
    assert skip(lstm, NEWEST, "cuda", "fp32") is None
    assert skip(lstm, NEWEST, "cuda", "tf32") is None
    assert skip(lstm, (0, 4, 16), "cuda", "fp32")[0] == "framework-lacks"
    for precision in ("fp16", "bf16"):
        assert skip(lstm, NEWEST, "cuda", precision)[0] == "precision-lacks"
    assert skip(gru, NEWEST, "cuda", "fp32") == ("framework-lacks", "jax-cudnn-lstm computes lstm only")


def test_tf32_needs_a_gpu() -> None:
    assert lacks("rnn-step/lstm-b32-h128", "cpu", "tf32")[0] == "precision-lacks"


def test_jax_has_no_original_program() -> None:
    assert lacks("rnn-step/lstm-b32-h128", protocol="published")[0] == "framework-lacks"


def test_server_does_not_fork_after_importing_jax() -> None:
    assert jax.FORK_AFTER_IMPORT is False


@pytest.mark.parametrize("protocol", ["aligned", "published"])
@pytest.mark.parametrize(("slug", "case"), [("seq-lstm", "lstm-b32-h128"), ("seq-rnn", "rnn-b128-h1024")])
def test_torch7_has_no_image_that_can_be_measured(slug: str, case: str, protocol: str) -> None:
    implementation: Any = adapters.implementation("torch7", slug)
    for device in ("cpu", "cuda"):
        sizes = {**NETWORKS[f"rnn-step/{case}"], "protocol": protocol}
        code, reason = implementation.lacks(sizes, (7,), device, "fp32")
        assert code == "image-unavailable"
        assert "Lua" in reason


@pytest.mark.parametrize("case_id", ["asr-lstm/1x320-ce-short", "lm-lstm/ptb-large"])
def test_torch7_computes_rnn_step_alone(case_id: str) -> None:
    for implementation in torch7.IMPLEMENTATIONS:
        assert implementation.lacks(dict(NETWORKS[case_id]), (7,), "cuda", "fp32")[0] == "framework-lacks"


def test_loading_torch7_fails_with_the_reason() -> None:
    with pytest.raises(ImportError, match="Lua"):
        torch7.load(1)
