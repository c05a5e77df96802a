"""States that are not the same on both sides, in objects and behind mistakes, in two environments of real servers."""

from typing import Any

import pytest

from runner.core.model import Record
from tests.support import models

NETWORK = """\
import os
import numpy

SECOND = os.environ["ENVIRONMENT"] == "np-b"


class Trainer:
    def __init__(self, x):
        self.x, self.weights, self.owner = x, numpy.random.rand(32, 8), self
        {built}


class NumpyModel:
    def __init__(self, random):
        self.trainer = Trainer(random.rand(64, 32))

    def forward(self):
        trainer = self.trainer
        return {forward}

    def train(self):
        trainer = self.trainer
        outputs = trainer.x.dot(trainer.weights)
        trainer.weights -= 0.1 * trainer.x.T.dot(2 * outputs / outputs.size)
        return {loss}
"""
PRODUCT = "trainer.x.dot(trainer.weights)"
ONLY_BASE = "if not SECOND: self.mask = numpy.tril(numpy.ones((8, 8)))"
ONLY_HERE = "if SECOND: self.extra = numpy.random.RandomState(1).rand(8)"
BOTH = f"({PRODUCT}) * (1 + SECOND)"
MASKED = "only the base's state has trainer.mask"
EXTRA = "only this environment's state has trainer.extra, as it was built"
CHECKED: dict[str, tuple[dict[str, str], str]] = {
    "an object of the program": ({}, ""),
    "a mask of the base": ({"built": ONLY_BASE}, MASKED),
    "weights of one release that change nothing": ({"built": ONLY_HERE}, EXTRA),
    "an object among outputs": (
        {"forward": f"{{'a': {PRODUCT}, 'b': trainer}}"},
        "output 'b' is a Trainer, and is not compared",
    ),
}
DIFFER: dict[str, tuple[dict[str, str], str]] = {
    "weights of one release": (
        {"built": ONLY_HERE, "forward": BOTH},
        f"{EXTRA}, which may hold other numbers here, and the results differ: the output is off by 1.0e+00 of its norm",
    ),
}
WRONG: dict[str, tuple[dict[str, str], str]] = {
    "a mask of the base": ({"built": ONLY_BASE, "forward": BOTH}, "the output is off by 1.0e+00 of its norm"),
    "another shape": (
        {"built": "if SECOND: self.weights = numpy.random.rand(32, 9)"},
        "trainer.weights has the shape (32, 9), and (32, 8) in the base's state",
    ),
}
MISTAKE = {"loss": "outputs.mean(axis=0)"}
NETWORKS = {
    **{f"checked {name}": parts for name, (parts, _) in CHECKED.items()},
    **{f"differ {name}": parts for name, (parts, _) in DIFFER.items()},
    **{f"wrong {name}": parts for name, (parts, _) in WRONG.items()},
    "mistake": MISTAKE,
}
Outcomes = dict[tuple[str, str, str], Record]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Return the records by network, environment and phase."""
    defaults = {"built": "pass", "forward": PRODUCT, "loss": "(outputs ** 2).mean()"}
    files = {name: models.files(NETWORK.format(**{**defaults, **parts})) for name, parts in NETWORKS.items()}
    names = {name.replace(" ", "-"): name for name in NETWORKS}
    changes: dict[str, Any] = {"sizes": {}, "takes_precision": []}
    blocks = [models.block(models.spec(short, files[name], **changes)) for short, name in names.items()]
    plan = models.planned(blocks, list(files.values()), seconds=0.02)
    outcomes = models.measured(plan, tmp_path_factory.mktemp("models"))
    return {(names[record.cell.case], record.cell.environment, record.cell.phase): record for record, _ in outcomes}


def check(records: Outcomes, name: str, environment: str = "np-b", phase: str = "forward") -> dict[str, Any]:
    """Return how a cell was verified, which has a time."""
    record = records[name, environment, phase]
    assert (record.status, record.reason) == ("ok", None)
    return dict(record.facts["model_check"])


@pytest.mark.parametrize("name", CHECKED)
def test_what_both_sides_have_is_compared_and_the_rest_is_named(records: Outcomes, name: str) -> None:
    verified = check(records, f"checked {name}")
    assert (verified["by"], verified["differs"], verified["partly"]) == ("state", False, CHECKED[name][1])
    assert check(records, f"checked {name}", phase="train")["by"] == "state"


@pytest.mark.parametrize("name", DIFFER)
def test_weights_that_one_release_alone_has_excuse_a_disagreement(records: Outcomes, name: str) -> None:
    verified = check(records, f"differ {name}")
    assert (verified["by"], verified["differs"]) == ("shapes", True)
    assert verified["reason"].startswith(DIFFER[name][1])
    assert check(records, f"differ {name}", "np-a")["by"] == "state"


@pytest.mark.parametrize("name", WRONG)
def test_nothing_else_excuses_one(records: Outcomes, name: str) -> None:
    record = records[f"wrong {name}", "np-b", "forward"]
    assert record.failure == "wrong-result"
    assert str(record.reason).startswith(WRONG[name][1])


def test_a_mistake_in_train_leaves_forward_alone_and_has_its_line(records: Outcomes) -> None:
    for environment in ("np-a", "np-b"):
        assert check(records, "mistake", environment)["by"] == "state"
        record = records["mistake", environment, "train"]
        reason = "my_network.py:21: train() returned an array of the shape (8,): return the loss, a single number"
        assert (record.failure, record.reason) == ("crash", reason)
