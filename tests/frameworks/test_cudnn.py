"""Implementations of cuDNN in TensorFlow and JAX, on a CPU with a stand-in for cuDNN's operation.

This checks what the adapters do around the operation: the layout of the buffer, states, lengths, clipping, and second
biases.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks import drive
from tests.frameworks.conftest import interpreter
from tests.support import needs

pytestmark = pytest.mark.frameworks

FRAMEWORKS = {"tf-1.8": "tensorflow", "tf-1.15": "tensorflow", "tf-2.x": "tensorflow", "jax": "jax"}
ENDS = ("tf-1.8", "tf-2.x", "jax")
"""Where errors are planted without --need slow: TensorFlow's oldest release and its newest one, and JAX."""
SLUGS = {
    "tensorflow": {"lstm": "cudnn-lstm", "gru": "cudnn-gru", "rnn": "cudnn-rnn", "relu": "cudnn-rnn"},
    "jax": {"lstm": "jax-cudnn-lstm"},
}
CASES: dict[str, dict[str, Any]] = {
    name: {**drive.SHAPES[name], "layers": min(drive.SHAPES[name]["layers"], 2), "steps": 4}
    for name in ("lstm-step-l3", "gru-sequence", "rnn-step", "relu-sequence", "template-both-ways")
}
CASES["ctc"] = {**drive.SHAPES["ctc"], "layers": 2, "steps": 7, "labels": 2}
CASES["clip-norm"] = drive.shrunk("lm-lstm/lm-small", layers=1, clip_norm=0.02, rate=20.0, steps=4)
CASES["clip-each"] = drive.shrunk("lm-lstm/template-2x64", layers=1, clip_each=0.03, optimizer="sgd", rate=0.5, steps=4)
PLANTS = {"gates": ("lstm-step-l3", "gru-sequence"), "second": ("lstm-fast", "gru-fast"), "norm": ("clip-norm",)}
FAST = {
    f"{cell}-fast": {**CASES[name], "rate": 1.0} for cell, name in (("lstm", "lstm-step-l3"), ("gru", "gru-sequence"))
}
"""Two trained biases move twice as far."""
NOT_IN_JAX = ("gates", "norm")
"""Its stand-in has no order of gates to change, and gradients of second biases are zeroed before the norm."""
IN_16_BITS = ("gru-sequence", "ctc", "clip-norm")
MIN_ERRORS = {"fp16": 1e-5, "bf16": 1e-4}
"""Precision -> the least error of outputs that shows that the network computed in 16 bits."""


@pytest.fixture(scope="module", params=FRAMEWORKS)
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def answers_of(environment: str, request: pytest.FixtureRequest, *, planted: bool) -> dict[str, Any]:
    """Return what the check reports for each question with an error, or for each without, in one process."""
    if environment not in ENDS and not needs.given(request.config, "slow"):
        pytest.skip(f"the ends run all code that plants errors: --need slow plants them in {environment}, too")
    python = interpreter(environment, request)
    script = Path(__file__).with_name("plant_cudnn.py")
    questioned = {
        name: each for name, each in questions(environment).items() if (each["plant"] != "nothing") == planted
    }
    command = [str(python), str(script), str(drive.ROOT / "runner"), FRAMEWORKS[environment], json.dumps(questioned)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    parsed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return parsed


def questions(environment: str) -> dict[str, Any]:
    """Return ``case/precision/plant`` -> what to ask."""
    slugs = SLUGS[FRAMEWORKS[environment]]
    cases = {**CASES, **FAST}
    triples = [(name, "fp32", "nothing") for name in cases if environment != "tf-1.8" or not cases[name]["ragged"]]
    triples += [
        (name, precision, "nothing") for name in IN_16_BITS for precision in MIN_ERRORS if environment == "tf-2.x"
    ]
    triples += [(name, "fp32", plant) for plant, names in PLANTS.items() for name in names]
    return {
        f"{name}/{precision}/{plant}": {
            "case": cases[name],
            "slug": slugs[cases[name]["cell"]],
            "precision": precision,
            "plant": plant,
        }
        for name, precision, plant in triples
        if cases[name]["cell"] in slugs and (FRAMEWORKS[environment], plant) not in {("jax", p) for p in NOT_IN_JAX}
    }


def test_networks_around_cudnn_agree_with_the_reference(environment: str, request: pytest.FixtureRequest) -> None:
    for name, answer in answers_of(environment, request, planted=False).items():
        _, precision, _ = name.split("/")
        assert (name, answer["class"], answer["reason"]) == (name, "ok", None)
        if precision == "fp32":
            drive.assert_close(name, *answer["errors"])
        else:
            assert answer["errors"][2] > MIN_ERRORS[precision], name


def test_planted_errors_are_detected(environment: str, request: pytest.FixtureRequest) -> None:
    classes = {name: answer["class"] for name, answer in answers_of(environment, request, planted=True).items()}
    assert classes
    assert classes == dict.fromkeys(classes, "wrong-result")
