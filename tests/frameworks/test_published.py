"""The published protocol: originals that train, with as many weights as their authors counted."""

from pathlib import Path
from typing import Any

import pytest

from runner.catalog.cases import CASES, ORIGINAL_PHASES
from runner.matrix import load
from tests.frameworks import drive

pytestmark = pytest.mark.frameworks

ROOT = Path(__file__).resolve().parents[2]
SHORT = {**CASES["asr-lstm/1x320-ce-short"], "steps": 4, "batch": 2}
DEEP = {**CASES["asr-lstm/4x320-ce-long"], "steps": 3, "batch": 2, "hidden": 8}
SMALL_CASE = {**CASES["asr-lstm/4x320-ctc-long"], "steps": 16, "batch": 2, "hidden": 8, "labels": 2}
STEP = {**CASES["rnn-step/lstm-b32-h128"], "steps": 5, "batch": 3, "hidden": 8, "inputs": 8}
PLAIN = {**CASES["rnn-step/rnn-b32-h128"], "steps": 5, "batch": 3, "hidden": 8, "inputs": 8}
SEQUENCE = {**CASES["rnn-sequence/lstm-l3-t30-b128-h512"], "steps": 5, "batch": 3, "hidden": 8, "inputs": 8}
WORDS = {**CASES["lm-lstm/words-35k"], "hidden": 8, "inputs": 8, "vocabulary": 20, "classes": 20, "rate": 1.0}
TUTORIAL = {**CASES["lm-lstm/ptb-large"], "steps": 5, "hidden": 8, "inputs": 8, "vocabulary": 20, "classes": 20}

PATIENCE = 900.0  # seconds: Theano, with nothing in the cache
LAYERS = 2 * 32 * (123 + 8 + 2) + 3 * 2 * 32 * (16 + 8 + 2)
# Braun 2018, table of the repository: two biases in PyTorch, one in TensorFlow and Keras.
ORIGINALS = [
    *(("torch-1.0", slug, SHORT, 572_800) for slug in ("lstm-cell-basic", "lstm-cell-fused", "nn-lstm")),
    *(("torch-2.x", slug, SHORT, 572_800) for slug in ("lstm-cell-basic", "lstm-cell-fused", "nn-lstm")),
    ("torch-1.0", "nn-lstm", DEEP, LAYERS + 16 * 10),
    ("torch-1.0", "nn-lstm", SMALL_CASE, LAYERS + 16 * 59),
    ("torch-2.x", "nn-lstm", SMALL_CASE, LAYERS + 16 * 59),
    ("theano-1.0", "theano-scan", STEP, 2 * 8 * 32 + 32),
    *(("tf-1.8", slug, SHORT, 571_520) for slug in ("lstm-cell", "lstm-block-cell", "lstm-block-fused-cell")),
    *(("tf-1.15", slug, SHORT, 571_520) for slug in ("lstm-cell", "lstm-block-cell", "lstm-block-fused-cell")),
    ("tf-1.8", "lstm-cell", DEEP, LAYERS - 8 * 32 + 16 * 10),
    ("tf-1.15", "lstm-cell", SMALL_CASE, LAYERS - 8 * 32 + 16 * 59 + 59),  # the one output layer with a bias
    ("tf-1.8", "lstm-block-cell", SMALL_CASE, LAYERS - 8 * 32 + 16 * 59),
    ("tf-1.8", "basic-lstm-cell", STEP, 2 * 8 * 32 + 32),
    ("tf-1.15", "basic-rnn-cell", PLAIN, 2 * 8 * 8 + 8),
    ("tf-1.15", "basic-lstm-cell", TUTORIAL, 20 * 8 + 2 * (4 * 8 * (8 + 8 + 1)) + 8 * 20 + 20),
    ("tf-1.8", "lstm-block-cell", TUTORIAL, 20 * 8 + 2 * (4 * 8 * (8 + 8 + 1)) + 8 * 20 + 20),
    ("keras-2.1-tf", "keras-lstm", SHORT, 571_520),
    ("torch-1.0", "nn-lstm", WORDS, 20 * 8 + 2 * (4 * 8 * (8 + 8 + 2)) + 8 * 20 + 20),
]

# Theano compiles each for minutes.
SLOW = [
    ("keras-2.1-theano", "keras-lstm", SHORT, 571_520),
    ("theano-0.8", "lasagne-lstm-layer", SHORT, 573_120 - 2 * 320),  # first states were counted, but not trained
    ("theano-0.8", "theano-scan", STEP, 2 * 8 * 32 + 32),
    ("theano-1.0", "theano-scan", PLAIN, 2 * 8 * 8 + 8 + 8),  # with the first state
    ("theano-1.0", "theano-scan", SEQUENCE, 2 * 8 * 32 + 32),  # of the last layer alone
]
PARAMETERS = [
    pytest.param(
        *implementation, id=f"{implementation[0]}-{implementation[1]}-{implementation[2]['name']}", marks=marks
    )
    for originals, marks in ((ORIGINALS, ()), (SLOW, pytest.mark.slow))
    for implementation in originals
]
LEFT_OUT_AND_KEPT = {"asr-lstm": (100, 400), "lm-lstm": (0, 200), "rnn-step": (0, 1000), "rnn-sequence": (0, 1000)}


@pytest.mark.parametrize(("environment", "slug", "case", "weights"), PARAMETERS, scope="module")
def test_an_original_trains_as_often_and_with_as_many_weights(
    python: Path, environment: str, slug: str, case: dict[str, Any], weights: int
) -> None:
    framework = load(ROOT / "matrix.yaml").environments[environment].framework
    with drive.server(python, framework) as client:
        client.hello(threads=1)
        phase = ORIGINAL_PHASES[case["workload"]][-1]
        result = client.measure(slug, dict(case), phase + "+published", timeout=PATIENCE)
    assert result["status"] == "ok", result
    assert result["trained_weights"] == weights
    counts = (len(result["warmup"]), len(result["seconds"]))
    assert counts == LEFT_OUT_AND_KEPT[case["workload"]]
