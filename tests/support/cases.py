"""A case of a few numbers, for tests of what surrounds it."""

from typing import Any

from runner.catalog.cases.recurrent import case

TINY: dict[str, Any] = dict(
    case(
        workload="rnn-step",
        name="tiny",
        steps=3,
        batch=2,
        inputs=4,
        hidden=4,
        loss="mse",
        optimizer="sgd",
        rate=0.01,
        seed=3,
    )
)
