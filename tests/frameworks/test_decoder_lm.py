"""The language model of examples/: all frameworks agree, and errors that are planted in one release are found."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.frameworks.one_round import ROOT, records_of
from tests.frameworks.planted_errors import NEW, Planted, assert_found, records_with_errors, require_images

pytestmark = [pytest.mark.docker, pytest.mark.frameworks]

EXAMPLE = ROOT / "examples" / "decoder_lm.py"
PROGRAMS = {
    "torch-1.0": ("by-hand",),
    "torch-1.12": ("by-hand",),
    "torch-2.x": ("by-hand", "fused"),
    "tf-2.x": ("function", "xla"),
    "jax": ("by-hand", "fused"),
}
"""Environment -> its variants. The NumPy of the first makes the references in float64."""
PHASES = ("forward", "train", "prefill", "decode")
MASK = "positions[:steps] > positions[:steps, None]"
RATIO = "(x * x).mean(-1, keepdims=True) + {})"
CACHE = "self.cache[layer][:, :, :, position{0} : position{1}].assign("
UPDATE = "cache[layer] = self.jax.lax.dynamic_update_slice_in_dim(cache[layer], new, position{}, 3)"
PLANTED: Mapping[str, Planted] = {
    "epsilon": Planted(
        "torch-2.x/by-hand", "train", "EPSILON = 1e-5", f"EPSILON = 1.1e-5 if {NEW} else 1e-5", "in float64"
    ),
    "mask": Planted(
        "torch-2.x/by-hand",
        "train",
        f"self.mask({MASK}, kind)\n        self.written = self.mask(positions[None]",
        f"self.mask({MASK} + int({NEW}), kind)\n        self.written = self.mask(positions[None]",
        "the loss of step 1",
    ),
    "residual": Planted(
        "torch-2.x/by-hand",
        "train",
        "x = x + linear(mixed.permute",
        f"x = x * int(not {NEW}) + linear(mixed.permute",
        "the loss of step 1",
    ),
    "decay": Planted(
        "torch-2.x/by-hand",
        "train",
        '"weight_decay": DECAY}',
        f'"weight_decay": DECAY * (not {NEW})}}',
        "is off by",
    ),
    "cache": Planted(
        "torch-2.x/by-hand",
        "decode",
        "self.cache[layer, 0, :, :, position] = key",
        f"self.cache[layer, 0, :, :, position - int({NEW})] = key",
        "the output is off by",
    ),
    "position": Planted(
        "torch-2.x/by-hand",
        "decode",
        "self.decoder(self.text[:, position:], self.rotations[:, position : position + 1], attend)",
        f"self.decoder(self.text[:, position:], self.rotations[:, position - int({NEW}) :][:, :1], attend)",
        "the output is off by",
    ),
    "tf-cache": Planted(
        "tf-2.x/function",
        "decode",
        CACHE.format("", " + 1"),
        CACHE.format(" - 1", ""),
        "the output is off by",
    ),
    "tf-decay": Planted(
        "tf-2.x/function",
        "train",
        "kept = param * (1 - RATE * DECAY) if",
        "kept = param if",
        "the loss of step 3",
    ),
    "jax-epsilon": Planted(
        "jax/by-hand",
        "forward",
        "return x * jax.lax.rsqrt(" + RATIO.format("EPSILON"),
        "return x * jax.lax.rsqrt(" + RATIO.format("1.1 * EPSILON"),
        "in float64",
    ),
    "jax-cache": Planted("jax/by-hand", "decode", UPDATE.format(""), UPDATE.format(" - 1"), "the output is off by"),
    "jax-mask": Planted(
        "jax/by-hand",
        "prefill",
        "self.causal = jnp.tri(steps, dtype=bool)",
        "self.causal = jnp.tri(steps, k=1, dtype=bool)",
        "the output is off by",
    ),
}
"""What is wrong in PyTorch shows in the newer of two releases; in other frameworks it shows beside PyTorch 1.12."""
BASE = "torch-1.12/by-hand"


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Cell -> record, of all frameworks."""
    require_images(request.config)
    return records_of(
        tmp_path_factory.mktemp("together"), *PROGRAMS, "!*/medium/*", "!*/gpu/*", "--model", str(EXAMPLE)
    )


@pytest.fixture(scope="module")
def with_errors(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """Cell -> record, of the networks with errors."""
    require_images(request.config)
    return records_with_errors(tmp_path_factory.mktemp("planted"), {EXAMPLE.name: (PLANTED, BASE)})


@pytest.mark.parametrize("environment", PROGRAMS)
def test_a_framework_agrees_with_float64_in_each_variant_and_phase(
    together: Mapping[str, dict[str, Any]], environment: str
) -> None:
    for variant in PROGRAMS[environment]:
        for phase in PHASES:
            record = together[f"{environment}/{variant}/decoder-lm/small/{phase}/fp32"]
            assert (record["status"], record.get("reason")) == ("ok", None)
            check = record["facts"]["model_check"]
            assert (check["by"], check["base"]) == ("weights", "NumPy in torch-1.0")
            assert check["fp64"] == ((environment, variant) != ("jax", "fused"))
            assert record["facts"]["forward_error"] < 1e-5


@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_found_where_it_is(with_errors: Mapping[str, dict[str, Any]], error: str) -> None:
    assert_found(with_errors, EXAMPLE.name, error, PLANTED, BASE)
