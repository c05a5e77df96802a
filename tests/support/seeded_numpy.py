"""A framework for tests: NumPy, with a generator that a test can seed.

``model_module`` makes a module of a model file.
"""

from types import ModuleType
from typing import Any

import numpy as np

from runner.harness.adapters import numpy as adapter

CASE: dict[str, Any] = {
    "workload": "my-network",
    "name": "small",
    "family": "model",
    "seed": 0,
    "phases": ["forward", "train"],
    "sizes": {},
    "classes": {"numpy": "NumpyModel"},
    "takes_weights": [],
    "takes_precision": [],
    "tolerance": None,
}
"""The case of a file whose class takes no ``precision``."""


class SeededNumpy(adapter.UserModel):
    """NumPy whose random numbers come from ``generator``, which a model file sees as ``FRAMEWORK``."""

    generator = np.random.RandomState()
    first_seed = 0

    def seed(self, number: int) -> None:
        """See UserModel."""
        self.generator.seed(number + self.first_seed)


def model_module(text: str, **names: Any) -> Any:
    """Return the module of a model file with this text, which sees ``names`` and ``FRAMEWORK``."""
    made = ModuleType("my_network")
    vars(made).update(names, FRAMEWORK=SeededNumpy.generator)
    exec(compile(text, "my_network.py", "exec"), vars(made))
    return made
