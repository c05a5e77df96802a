"""What a wrapper is written for: how the network is imported and built, and which template fits it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal[
    "torch_module",
    "lightning_module",
    "torch_function",
    "keras_model",
    "tensorflow_function",
    "jax_function",
    "numpy_function",
]
"""The names of the templates."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a wrapper is written for.

    Attributes:
        kind: the template.
        name: what the title of the wrapper calls it.
        imports: the lines that import it, behind those of the framework.
        build: the expression that builds it; of a function, its name.
        root: the folder whose files travel, which imports are looked for in.
        forward_inputs: how many inputs the forward pass of a LightningModule takes, of those of a batch; None where
            it has no forward pass.
    """

    kind: Kind
    name: str
    imports: str
    build: str
    root: Path
    forward_inputs: int | None = None
