"""The networks of examples/ that several frameworks have, and the errors that are planted in each."""

from collections.abc import Mapping
from typing import NamedTuple

from tests.frameworks.planted_errors import NEW, Planted

__all__ = ["NETWORKS", "Network"]


class Network(NamedTuple):
    """A network of examples/.

    Attributes:
        file: its name in examples/.
        programs: environment -> its variants. The NumPy of the first environment makes the references in float64, and
            the first variant there is the base of the errors.
        planted: the errors, by their names.
    """

    file: str
    programs: Mapping[str, tuple[str, ...]]
    planted: Mapping[str, Planted]

    @property
    def base(self) -> str:
        """The environment/variant in which no error is planted."""
        environment, variants = next(iter(self.programs.items()))
        return f"{environment}/{variants[0]}"


FRAMEWORKS = dict.fromkeys(("torch-1.12", "torch-2.x", "tf-2.x", "jax"), ("model",))
TORCH = "torch-2.x/model"

GRAPH: Mapping[str, Planted] = {
    "direction": Planted(
        TORCH, "forward", "(0, self.sources)", f"(0, self.targets if {NEW} else self.sources)", "the output is off by"
    ),
    "mean": Planted(
        TORCH, "train", "gathered) / self.counts", f"gathered) / (1 if {NEW} else self.counts)", "the loss of step 1"
    ),
    "epsilon": Planted(TORCH, "train", "eps=EPSILON", f"eps=EPSILON * (1 + {NEW})", "in float64"),
    "jax-duplicates": Planted("jax/model", "forward", ".add(x[sources])", ".set(x[sources])", "the output is off by"),
}
RECOMMENDER: Mapping[str, Planted] = {
    "mean": Planted(TORCH, "forward", 'mode="sum"', f'mode="mean" if {NEW} else "sum"', "the output is off by"),
    "pairs": Planted(TORCH, "forward", "self.right]], 1)", f"self.right + {NEW}]], 1)", "the output is off by"),
    "frozen": Planted(
        TORCH, "train", "sparse=True)", f"sparse=True).requires_grad_(not {NEW})", "the loss of step 2 is off by"
    ),
    "jax-duplicates": Planted(
        "jax/model", "train", ".add(change)", ".set(tables[name][rows] + change)", "the loss of step 2 is off by"
    ),
}
DEPTHWISE: Mapping[str, Planted] = {
    "epsilon": Planted(TORCH, "train", "eps=EPSILON,", f"eps=EPSILON * (1 + 0.1 * {NEW}),", "in float64"),
    "shortcut": Planted(TORCH, "train", "x = x + entered", f"x = x + entered * (not {NEW})", "the loss of step 1"),
    "relu6": Planted(TORCH, "forward", "nn.ReLU6()", f"(nn.ReLU if {NEW} else nn.ReLU6)()", "the output is off by"),
    "momentum": Planted(TORCH, "train", "momentum=MOMENTUM", f"momentum=MOMENTUM * (not {NEW})", "the loss of step 3"),
    "jax-running": Planted("jax/model", "forward", "*inputs)[0]", "*inputs, is_training=True)[0]", "the output is off"),
}
UNET_3D: Mapping[str, Planted] = {
    "epsilon": Planted(TORCH, "train", "eps=EPSILON)", f"eps=EPSILON * (1 + 0.1 * {NEW}))", "in float64"),
    "skip": Planted(TORCH, "train", "join((x, below))", f"join((x * (not {NEW}), below))", "the loss of step 1"),
    "groups": Planted(TORCH, "forward", "nn.GroupNorm(GROUPS,", f"nn.GroupNorm(GROUPS >> {NEW},", "the output is off"),
    "nesterov": Planted(
        TORCH,
        "train",
        "momentum=MOMENTUM, nesterov=True",
        f"momentum=MOMENTUM, nesterov=not {NEW}",
        "the loss of step 2",
    ),
    "tf-padding": Planted(
        "tf-2.x/model", "forward", "layers.ZeroPadding3D(1)", "layers.ZeroPadding3D(((0, 2),) * 3)", "the output is off"
    ),
}
RESIDUAL: Mapping[str, Planted] = {
    "running": Planted(
        TORCH,
        "train",
        "momentum=1 - KEPT)",
        f"momentum=(1 - KEPT) * (1 + {NEW}))",
        "of what 3 steps change, 1e-03 allowed; the base is torch-1.12",
    ),
    "residual": Planted(
        TORCH, "train", "inner) + shortcut)", f"inner) + shortcut * (not {NEW}))", "the loss of step 1"
    ),
    "decay": Planted(TORCH, "train", "weight_decay=DECAY", f"weight_decay=DECAY * (not {NEW})", "is off by"),
    "momentum": Planted(TORCH, "train", "momentum=MOMENTUM", f"momentum=MOMENTUM * (not {NEW})", "the loss of step 3"),
    "tf-decay": Planted("tf-2.x/model", "train", "gradient + DECAY * variable", "gradient", "the loss of step"),
    "jax-epsilon": Planted(
        "jax/model", "forward", "lax.rsqrt(variance + EPSILON)", "lax.rsqrt(variance)", "the output is"
    ),
}
ENCODER: Mapping[str, Planted] = {
    "epsilon": Planted(
        "torch-2.x/by-hand", "train", "bias, EPSILON)", f"bias, EPSILON * (1 + 0.1 * {NEW}))", "in float64"
    ),
    "residual": Planted(
        "torch-2.x/by-hand",
        "train",
        'x + linear(name + "down"',
        f'x * (not {NEW}) + linear(name + "down"',
        "the loss of step 1",
    ),
    "mask": Planted(
        "torch-2.x/by-hand",
        "forward",
        "masked_fill(self.ended",
        f"masked_fill(self.ended & (not {NEW})",
        "the output is off by",
    ),
    "decay": Planted(
        "torch-2.x/by-hand", "train", '"weight_decay": DECAY}', f'"weight_decay": DECAY * (not {NEW})}}', "is off by"
    ),
    "tf-mask": Planted("tf-2.x/function", "train", "tf.where(ended,", "tf.where(ended[::-1],", "the loss of step 1"),
    "jax-gelu": Planted("jax/by-hand", "forward", "approximate=False", "approximate=True", "the output is off by"),
}
ENCODERS = {
    "torch-1.12": ("by-hand",),
    "torch-2.x": ("by-hand", "fused"),
    "tf-2.x": ("function", "xla"),
    "jax": ("by-hand", "fused"),
}
NETWORKS: Mapping[str, Network] = {
    "depthwise": Network("depthwise.py", FRAMEWORKS, DEPTHWISE),
    "encoder": Network("encoder.py", ENCODERS, ENCODER),
    "graph": Network("graph.py", FRAMEWORKS, GRAPH),
    "recommender": Network("recommender.py", FRAMEWORKS, RECOMMENDER),
    "residual": Network("residual.py", {**FRAMEWORKS, "keras-3": ("model",)}, RESIDUAL),
    "unet-3d": Network("unet_3d.py", FRAMEWORKS, UNET_3D),
}
"""The name that a network has in a cell -> the network."""
