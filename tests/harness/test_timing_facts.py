"""How a step was timed goes through the real protocol, and into the record."""

import pytest

from runner.collect import collect
from runner.model import Cell, Outcome, Provisioned
from tests.harness.conftest import Ask

HOW = ("batch", "clock_seconds", "warmup_seconds", "steady")
CELL = Cell(environment="numpy", implementation="sound", workload="rnn-step", case="tiny", phase="train")
READY = Provisioned(environment="numpy", framework="numpy", handle="", digest="d", seconds=0.0, cached=True)


@pytest.mark.parametrize("phase", ["forward", "gradient", "train"])
def test_a_record_says_how_its_step_was_timed(phase: str, ask: Ask) -> None:
    reply = ask("sound", phase=phase)
    record, _ = collect(Outcome(cell=CELL, round=1, reply=reply, facts={}, ready=READY), "run", {})
    facts = {name: record.facts[name] for name in HOW}
    assert isinstance(facts["batch"], int)
    assert facts["batch"] >= 1
    assert facts["clock_seconds"] > 0
    assert facts["warmup_seconds"] >= sum(record.warmup[:5])
    assert isinstance(facts["steady"], bool)


def test_what_compiling_took_is_one_sample_without_a_batch(ask: Ask) -> None:
    reply = ask("sound", phase="compile")
    assert len(reply["seconds"]) == 1
    assert not set(HOW) & set(reply)
