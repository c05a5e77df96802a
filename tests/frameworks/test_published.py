"""The published protocol: originals that train, with as many weights as their authors counted."""

from pathlib import Path
from typing import Any

import pytest

from runner.matrix import load
from runner.workloads import CASES
from tests.frameworks import drive

pytestmark = pytest.mark.frameworks

ROOT = Path(__file__).resolve().parents[2]
SHORT = {**CASES["asr-lstm/1x320-ce-short"], "steps": 4, "batch": 2}
DEEP = {**CASES["asr-lstm/4x320-ce-long"], "steps": 3, "batch": 2, "hidden": 8}
SAID = {**CASES["asr-lstm/4x320-ctc-long"], "steps": 16, "batch": 2, "hidden": 8, "labels": 2}
WORDS = {**CASES["lm-lstm/words-35k"], "hidden": 8, "inputs": 8, "vocabulary": 20, "classes": 20, "rate": 1.0}

LAYERS = 2 * 32 * (123 + 8 + 2) + 3 * 2 * 32 * (16 + 8 + 2)
# Braun 2018, table of the repository: two biases in PyTorch, one in TensorFlow and Keras.
ORIGINALS = [
    *(("torch-1.0", slug, SHORT, 572_800) for slug in ("lstm-cell-basic", "lstm-cell-fused", "nn-lstm")),
    *(("torch-2.x", slug, SHORT, 572_800) for slug in ("lstm-cell-basic", "lstm-cell-fused", "nn-lstm")),
    ("torch-1.0", "nn-lstm", DEEP, LAYERS + 16 * 10),
    ("torch-1.0", "nn-lstm", SAID, LAYERS + 16 * 59),
    ("torch-2.x", "nn-lstm", SAID, LAYERS + 16 * 59),
    ("torch-1.0", "nn-lstm", WORDS, 20 * 8 + 2 * (4 * 8 * (8 + 8 + 2)) + 8 * 20 + 20),
]


@pytest.mark.parametrize(
    ("environment", "slug", "case", "weights"),
    ORIGINALS,
    ids=[f"{environment}-{slug}-{case['name']}" for environment, slug, case, _ in ORIGINALS],
    scope="module",
)
def test_an_original_trains_as_often_and_with_as_many_weights(
    python: Path, environment: str, slug: str, case: dict[str, Any], weights: int
) -> None:
    framework = load(ROOT / "matrix.yaml").environments[environment].framework
    with drive.server(python, framework) as client:
        client.hello(threads=1)
        result = client.measure(slug, dict(case), "train+published")
    assert result["status"] == "ok", result
    assert result["trained_weights"] == weights
    counts = (len(result["warmup"]), len(result["seconds"]))
    assert counts == ((0, 200) if case["workload"] == "lm-lstm" else (100, 400))
