"""A network without a state is checked by what it computes; each kind of one, in two environments of real servers."""

from typing import Any

import pytest

from runner.core.model import Record
from tests.support import models

NETWORK = """\
import os
import numpy

SECOND = os.environ["ENVIRONMENT"] == "np-b"


KEPT = []  # what the runner does not look into: a variable of the module


class Data:
    pass


class NumpyModel:
    def __init__(self, random, precision="fp32"):
        data = Data()
        self.number = len(KEPT)
        KEPT.append(data)
        data.kind = {{"fp64": "float64"}}.get(precision, "float32")
        data.x = random.rand(64, 32).astype(data.kind)
        data.w = random.randn(32, 8).astype(data.kind)
        data.calls = 0

    def forward(self):
        data = KEPT[self.number]
        data.calls += 1
        return {forward}

    def train(self):
        data = KEPT[self.number]
        outputs = data.x.dot(data.w)
        {update}
        return {loss}
"""
UPDATE = "data.w -= 0.1 * data.x.T.dot(2 * outputs / outputs.size)"
LOSS = "(outputs ** 2).mean()"
NORM = "data.x / numpy.sqrt(data.x.var(0) + {})"
AGREE = {
    "product": "data.x.dot(data.w)",
    "float64": "data.x.astype('float64') / 3",
    "integers": "numpy.argsort(data.x, 0), data.x > 0.5",
    "complex numbers": "numpy.fft.fft(data.x)",
    "ragged lists": "{'a': [data.x, (data.w, None, 3)], 'b': [1.0, [data.x[0], 2]]}",
    "one number": "data.x.sum()",
    "rounding": "data.x * (1 + SECOND * 1e-6)",
    "noise": "data.x + numpy.random.rand(64, 32)",
    "numbers of NumPy's generator": "numpy.random.RandomState(numpy.random.randint(9) * 0).rand(3) + data.x[0, :3]",
}
DIFFER = {
    "another axis": (
        "numpy.cumsum(data.x, int(SECOND))",
        "the output is off by 7.0e-01 of its norm after the timing, ",
    ),
    "another epsilon": (
        NORM.format("(1e-4 if SECOND else 1e-5)"),
        "the output is off by 5.4e-04 of its norm after the timing, 1.2e-05 a",
    ),
    "one integer": (
        "numpy.argsort(data.x[0]) + SECOND * (data.x[0] == data.x[0].max())",
        "other values at 1 of its 32 pl",
    ),
    "a small error of float64": (
        "data.x.astype('float64') / (3 + SECOND * 1e-7)",
        "of its norm after the timing, 1e-09 allowed",
    ),
}
SAME = "with other numbers from `random` they are the same"
SILENT = {
    "zeros": ("numpy.zeros_like(data.x)", SAME),
    "a shape": ("data.x.dot(data.w).shape", SAME),
    "nothing": ("data.x[:0]", SAME),
    "a table": ("numpy.arange(100.0)", SAME),
    "a counter": ("data.x * data.calls", "its results differ from call to call in the base itself"),
}
TRAINED = {
    "a step": (UPDATE, LOSS, ""),
    "another rate": (UPDATE.replace("0.1", "(0.11 if SECOND else 0.1)"), LOSS, "the loss of step 2 is off by"),
    "gradients alone": ("data.x.T.dot(2 * outputs / outputs.size)", LOSS, "its losses are the same in each step"),
    "a constant loss": (UPDATE, "0.0", "its losses show nothing"),
}
IN_FLOAT64 = {
    "right": (NORM.format("1e-5"), ""),
    "epsilon": (NORM.format("(1.2e-5 if SECOND else 1e-5)"), "in float64, 1e-09"),
}
Outcomes = dict[tuple[str, str], list[Record]]


def written(**parts: str) -> str:
    """Return a model file with what a network computes."""
    return NETWORK.format(**{"forward": AGREE["product"], "update": UPDATE, "loss": LOSS, **parts})


NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"agree {name}": (written(forward=code), {}) for name, code in AGREE.items()},
    **{f"differ {name}": (written(forward=code), {}) for name, (code, _) in DIFFER.items()},
    **{f"silent {name}": (written(forward=code), {}) for name, (code, _) in SILENT.items()},
    **{
        f"trained {name}": (written(update=update, loss=loss), {"phases": ["train"]})
        for name, (update, loss, _) in TRAINED.items()
    },
    **{
        f"in float64 {name}": (written(forward=code), {"takes_precision": ["numpy"]})
        for name, (code, _) in IN_FLOAT64.items()
    },
    "types": (written(forward="data.x.astype('float64') if SECOND else data.x"), {}),
    "tolerance": (written(forward="data.x * (1 + 0.005 * SECOND)"), {"tolerance": {"*": 1e-2}}),
    "shapes": (written(forward="data.x[:63] if SECOND else data.x"), {}),
}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Return the records of two rounds by network and environment."""
    files = {name: models.files(text) for name, (text, _) in NETWORKS.items()}
    blocks = []
    for name, (_, changes) in NETWORKS.items():
        parts = {"sizes": {}, "takes_precision": [], "phases": ["forward"], **changes}
        blocks.append(models.block(models.spec(name.replace(" ", "-").replace("'", ""), files[name], **parts)))
    plan = models.planned(blocks, list({each.digest: each for each in files.values()}.values()), rounds=2, seconds=0.02)
    outcomes: Outcomes = {}
    names = {name.replace(" ", "-").replace("'", ""): name for name in NETWORKS}
    for record, _ in models.measured(plan, tmp_path_factory.mktemp("models")):
        outcomes.setdefault((names[record.cell.case], record.cell.environment), []).append(record)
    return outcomes


def checks(records: Outcomes, name: str, environment: str) -> list[dict[str, Any]]:
    """Return how a network was verified in an environment, for each round."""
    outcomes = records[name, environment]
    assert [(record.status, record.reason) for record in outcomes] == [("ok", None)] * 2
    return [record.facts["model_check"] for record in outcomes]


@pytest.mark.parametrize("name", AGREE)
@pytest.mark.parametrize("environment", ["np-a", "np-b"])
def test_outputs_that_agree_are_checked(records: Outcomes, name: str, environment: str) -> None:
    assert {check["by"] for check in checks(records, f"agree {name}", environment)} == {"outputs"}


@pytest.mark.parametrize("name", DIFFER)
def test_outputs_that_differ_are_unchecked_and_the_disagreement_is_named(records: Outcomes, name: str) -> None:
    assert {check["by"] for check in checks(records, f"differ {name}", "np-a")} == {"outputs"}
    for check in checks(records, f"differ {name}", "np-b"):
        assert (check["by"], check["differs"], check["tolerance"]) == ("shapes", True, {})
        assert DIFFER[name][1] in check["reason"]
        assert check["reason"].startswith("no state could be loaded (NumpyModel has no state(), and no attribute is")


@pytest.mark.parametrize("name", SILENT)
@pytest.mark.parametrize("environment", ["np-a", "np-b"])
def test_results_that_show_nothing_check_nothing(records: Outcomes, name: str, environment: str) -> None:
    for check in checks(records, f"silent {name}", environment):
        assert (check["by"], check["differs"]) == ("shapes", False)
        assert SILENT[name][1] in check["reason"]


@pytest.mark.parametrize("name", TRAINED)
def test_losses_check_training_where_they_show_an_update(records: Outcomes, name: str) -> None:
    for check in checks(records, f"trained {name}", "np-b"):
        assert check["by"] == ("shapes" if TRAINED[name][2] else "outputs")
        assert TRAINED[name][2] in check["reason"]


@pytest.mark.parametrize("name", IN_FLOAT64)
def test_float64_decides_in_every_round(records: Outcomes, name: str) -> None:
    for check in checks(records, f"in float64 {name}", "np-b"):
        assert (check["by"], check["fp64"]) == (("shapes", False) if IN_FLOAT64[name][1] else ("outputs", True))
        assert IN_FLOAT64[name][1] in check["reason"]


def test_floats_of_another_type_are_in_the_record(records: Outcomes) -> None:
    for check in checks(records, "types", "np-b"):
        assert (check["by"], check["types"]) == ("outputs", "the output has numbers of float64, and of float32 in np-a")
    assert {check["types"] for check in checks(records, "types", "np-a")} == {""}


def test_the_tolerance_of_the_file_counts(records: Outcomes) -> None:
    for check in checks(records, "tolerance", "np-b"):
        assert (check["by"], check["tolerance"]) == ("outputs", {"loss": 1e-2, "forward": 1e-2})


def test_another_shape_is_wrong(records: Outcomes) -> None:
    for record in records["shapes", "np-b"]:
        assert record.failure == "wrong-result"
        assert record.reason == "the output has the shape (63, 32) after the timing, and (64, 32) in np-a"
