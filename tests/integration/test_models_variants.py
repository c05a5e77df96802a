"""Variants and phases of a user's network, measured by real servers: each is verified against the base."""

from pathlib import Path
from typing import Any

import pytest

from runner.core.model import Block, Cell, Record
from tests.support import models

NETWORK = """\
import os
import numpy

ENVIRONMENT = os.environ["ENVIRONMENT"]


class NumpyModel:
    def __init__(self, random, variant, width, precision):
        kind = {"fp64": "float64"}.get(precision, "float32")
        self.weights = numpy.random.rand(width, width).astype("float32").astype(kind)
        self.x = random.rand(8, width).astype(kind)
        self.variant = variant

    def forward(self):
        return self.x.dot(self.weights) if self.variant == "dot" else numpy.einsum("ij,jk", self.x, self.weights)

    def train(self):
        outputs = self.forward()
        self.weights -= 0.01 * self.x.T.dot(2 * outputs / outputs.size)
        return (outputs ** 2).mean()

    def decode(self):
        return self.forward()[:1] * 3
"""
VARIANTS = ("dot", "einsum")
PHASES = ("forward", "train", "decode")
WRONG = {
    "a variant": ('numpy.einsum("ij,jk", self.x', 'numpy.einsum("ij,jk", 1.01 * self.x'),
    "a phase": ("* 3", '* (3 if ENVIRONMENT == "np-a" else 3.01)'),
}
"""What is wrong -> a text of the network, and what it is replaced by."""
WRONG_CELLS = {
    "a variant": [f"{name}/einsum/{phase}" for name in ("np-a", "np-b") for phase in PHASES],
    "a phase": ["np-b/dot/decode", "np-b/einsum/decode"],
}


def records(folder: Path, network: str, **how: Any) -> dict[str, Record]:
    """Return the records of a network by environment, variant and phase."""
    model = models.files(network)
    stored = [{"name": name, "since": [], "before": []} for name in VARIANTS]
    specification = models.spec("small", model, variants={"numpy": stored}, phases=list(PHASES))
    cells = tuple(
        Cell(environment=name, implementation=variant, workload="my-network", case="small", phase=phase)
        for name in ("np-a", "np-b")
        for variant in VARIANTS
        for phase in PHASES
    )
    block = Block(case_id=cells[0].case_id, spec=specification, device="cpu", cells=cells)
    plan = models.planned([block], [model], **how)
    return {
        f"{record.cell.environment}/{record.cell.implementation}/{record.cell.phase}": record
        for record, _ in models.measured(plan, folder)
    }


@pytest.mark.parametrize("process", ["fork", "plain"])
def test_variants_and_phases_are_verified_against_the_first_variant_of_the_base(tmp_path: Path, process: str) -> None:
    outcomes = records(tmp_path, NETWORK, process=process)
    assert {name: (record.status, record.reason) for name, record in outcomes.items()} == {
        f"{name}/{variant}/{phase}": ("ok", None)
        for name in ("np-a", "np-b")
        for variant in VARIANTS
        for phase in PHASES
    }
    for record in outcomes.values():
        check = record.facts["model_check"]
        assert (check["by"], check["base"], check["reason"], check["fp64"]) == ("state", "np-a/dot", "", True)
        assert ("loss_error" in record.facts) == (record.cell.phase == "train")
    errors = [outcomes[f"np-b/einsum/{phase}"].facts["output_errors"]["output"] for phase in ("forward", "decode")]
    assert all(0 < error < 1e-6 for error in errors)


@pytest.mark.parametrize("name", WRONG)
def test_what_computes_something_else_is_wrong_and_nothing_else_is(tmp_path: Path, name: str) -> None:
    text, replacement = WRONG[name]
    assert NETWORK.count(text) == 1
    outcomes = records(tmp_path, NETWORK.replace(text, replacement))
    for cell, record in outcomes.items():
        is_wrong = cell in WRONG_CELLS[name]
        assert (record.failure == "wrong-result") == is_wrong, (cell, record.reason)
        assert (record.status == "ok") == (not is_wrong)
    failed = [str(record.reason) for record in outcomes.values() if record.status != "ok"]
    assert all("the base is np-a/dot" in reason or "in np-a/dot" in reason for reason in failed)


def test_the_outputs_of_a_phase_are_those_of_its_own_method(tmp_path: Path) -> None:
    """``decode`` of one environment has its outputs the other way round, and ``decode_outputs`` turns them."""
    decode = "return self.forward()[:1] * 3"
    turned = """made = self.forward()[:1] * 3
        return made if ENVIRONMENT == "np-a" else made.T

    def decode_outputs(self):
        return self.decode() if ENVIRONMENT == "np-a" else self.decode().T"""
    assert NETWORK.count(decode) == 1
    network = NETWORK.replace(decode, turned)
    for folder in ("right", "wrong"):
        (tmp_path / folder).mkdir()
    outcomes = records(tmp_path / "right", network)
    assert {(record.status, record.reason) for record in outcomes.values()} == {("ok", None)}
    wrong = records(tmp_path / "wrong", network.replace("self.decode().T", "1.01 * self.decode().T"))
    failed = sorted(name for name, record in wrong.items() if record.failure == "wrong-result")
    assert failed == ["np-b/dot/decode", "np-b/einsum/decode"]
