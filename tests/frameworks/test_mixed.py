"""Networks in 16 bits in TensorFlow 2, Keras 3 and JAX agree with the reference, and planted errors are detected."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.harness import adapters
from runner.harness.adapters.base import LOSS_SCALE
from tests.frameworks import drive
from tests.support.networks import NETWORKS

pytestmark = pytest.mark.frameworks

ENVIRONMENTS = {
    "tf-2.x": ("tensorflow", (2, 21, 0)),
    "keras-3": ("keras", (3, 15, 1)),
    "jax": ("jax", (0, 10, 2)),
}
PHASES = ("train", "gradient", "forward")
SMALL = {
    **{name: drive.SHAPES[name] for name in ("lstm-step", "rnn-step", "gru-step", "relu-sequence")},
    "ctc": {**drive.SHAPES["ctc"], "layers": 2},
    "lm": drive.SHAPES["lm"],
    "clipped": {**drive.CLIPPED["clip-each"], "clip_value": 0.01, "clip_norm": 0.02},
}
"""One case for each code path: cells, losses, ways, lengths, carried states, words, clipping, weights in 16 bits."""
SHIPPED = ("rnn-step/lstm-b32-h128", "asr-lstm/1x320-ce-short", "lm-lstm/lm-small")
ARITHMETIC = {
    "tensorflow": "layers in {}, weights in float32",
    "keras": "policy mixed_{}, weights in float32",
    "jax": "layers in {}, weights in float32",
}
TYPES = {"fp16": "float16", "bf16": "bfloat16"}
MIN_ERRORS = {"fp16": 1e-5, "bf16": 1e-4}
"""Precision -> an error of the outputs below which the network cannot have computed in 16 bits."""

LOSE_BIAS = {
    "tensorflow": {
        "harness/adapters/tensorflow/layouts.py": "\n_convert = convert\ndef convert(case, weights, layout):\n"
        "    weights = dict(weights)\n    weights['layer0/bias'] = weights['layer0/bias'] * 0\n"
        "    return _convert(case, weights, layout)\n"
    },
    "keras": {
        "harness/adapters/keras/layers.py": "\n_to_keras = Layout.to_keras\n"
        "Layout.to_keras = lambda self, name, array: "
        "_to_keras(self, name, array * 0 if name == 'layer0/bias' else array)\n"
    },
    "jax": {
        "harness/adapters/jax/network.py": "\n_layer = layer\ndef layer(cell, x, weights, *rest):\n"
        "    return _layer(cell, x, weights[:2] + [weights[2] * 0], *rest)\n"
    },
}
NOT_DIVIDED = {
    "tensorflow": {"harness/adapters/tensorflow/losses.py": "\ndivided = lambda tf, gradients, by: gradients\n"},
    "keras": {
        "harness/adapters/keras/traced.py": "\n_init = Engine.__init__\ndef _undivided(self, *rest):\n"
        "    _init(self, *rest)\n    self.optimizer.loss_scale_factor = None\nEngine.__init__ = _undivided\n"
    },
    "jax": {
        "harness/adapters/jax/scan.py": "\nScan.trained = lambda self, gradients: "
        "{name: gradients[name] * self.scale for name in gradients}\n"
    },
}
OTHER_TYPE = {name: {"harness/adapters/mixed.py": "\nTYPES['fp16'] = 'bfloat16'\n"} for name in ARITHMETIC}
PLANTS = {"lost bias": LOSE_BIAS, "gradients not divided": NOT_DIVIDED, "bf16 for fp16": OTHER_TYPE}


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def client(python: Path, environment: str) -> Iterator[drive.Client]:
    """A server with one thread: those of a network wait for each other, and other tests have the second CPU."""
    framework, _ = ENVIRONMENTS[environment]
    with drive.server(python, framework) as client:
        assert client.hello(threads=1)["status"] == "ok"
        yield client


def able(environment: str, case: Mapping[str, Any], precision: str) -> list[str]:
    """Return the slugs that the environment has for a case in a precision on a CPU."""
    framework, release = ENVIRONMENTS[environment]
    classes = adapters.implementations(framework)
    return [c.slug for c in classes if c.concerns(dict(case)) and not c.lacks(dict(case), release, "cpu", precision)]


@pytest.mark.parametrize("precision", TYPES)
@pytest.mark.parametrize("name", SMALL)
def test_small_networks_agree_with_the_reference(
    client: drive.Client, environment: str, name: str, precision: str
) -> None:
    phase = PHASES[list(SMALL).index(name) % len(PHASES)]
    slugs = able(environment, SMALL[name], precision)
    assert slugs or (environment, precision, SMALL[name]["output_bias"]) == ("keras-3", "bf16", True)
    for slug in slugs:
        result = client.measure(slug, SMALL[name], phase, precision=precision, seconds=0.01)
        assert (slug, result["status"], result.get("reason")) == (slug, "ok", None)
        assert result["forward_error"] > MIN_ERRORS[precision], slug
        framework, _ = ENVIRONMENTS[environment]
        pure = SMALL[name]["workload"] == "deepbench-rnn"
        words = ("weights, data and states in {}" if pure else ARITHMETIC[framework]).format(TYPES[precision])
        assert result["arithmetic"] == words + (f", loss scale {LOSS_SCALE:g}" if precision == "fp16" else "")


@pytest.mark.parametrize("precision", TYPES)
@pytest.mark.parametrize("case_id", SHIPPED)
def test_shipped_networks_are_within_the_tolerance(
    client: drive.Client, environment: str, case_id: str, precision: str
) -> None:
    case = dict(NETWORKS[case_id])
    slugs = able(environment, case, precision)
    if (environment, precision, case["output_bias"]) == ("keras-3", "bf16", True):
        assert not slugs
        return
    slug = slugs[-1]
    result = client.measure(slug, case, "train", precision=precision, seconds=0.01)
    assert (slug, result["status"], result.get("reason")) == (slug, "ok", None)


@pytest.fixture(scope="module", params=PLANTS)
def planted(python: Path, environment: str, request: pytest.FixtureRequest) -> Iterator[drive.Client]:
    """A server of a harness with a planted error."""
    framework, _ = ENVIRONMENTS[environment]
    with drive.server(python, framework, more=PLANTS[request.param][framework]) as client:
        assert client.hello(threads=1)["status"] == "ok"
        yield client


def test_planted_errors_are_detected(planted: drive.Client, environment: str, request: pytest.FixtureRequest) -> None:
    plant = str(request.node.callspec.params["planted"])
    for precision in TYPES if plant == "lost bias" else ("fp16",):
        for slug in able(environment, SMALL["lstm-step"], precision):
            result = planted.measure(slug, SMALL["lstm-step"], precision=precision)
            assert (slug, result["status"], result["class"]) == (slug, "failed", "wrong-result")
