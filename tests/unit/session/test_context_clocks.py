"""The clocks that a run asks for: those of the matrix and of `--pin`, and when resumed those it began with."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.backends.venv import VenvBackend
from runner.core.model import Measurement
from runner.core.model.devices import LEAVE, ClockPolicy
from runner.gpu.clocks.policy import clock_policy
from runner.matrix.models import GpuSettings
from runner.session.context import clocks, setup
from runner.session.execution.resume import with_header
from runner.session.options import Options
from runner.store.header import RunHeader


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ClockPolicy("base", "max")),
        ({"clocks": "leave"}, LEAVE),
        ({"clocks": "leave", "memory": "max"}, ClockPolicy("leave", "max")),
        ({"clocks": 1410, "memory": "leave"}, ClockPolicy(1410, "leave")),
        ({"clocks": "max", "memory": 1215}, ClockPolicy("max", 1215)),
    ],
)
def test_what_the_matrix_asks_for(settings: dict[str, Any], expected: ClockPolicy) -> None:
    assert clocks(GpuSettings(**settings), pin=None) == expected
    assert clocks(GpuSettings(**settings), pin=True) == replace(expected, force=True)
    assert clocks(GpuSettings(**settings), pin=False) == LEAVE
    for policy in (expected, replace(expected, force=True)):
        assert clock_policy(json.loads(json.dumps(policy.json()))) == policy


def test_a_run_that_is_resumed_asks_for_the_clocks_it_began_with() -> None:
    shipped = Path(__file__).parents[3] / "matrix.yaml"
    typed = Options(matrix=shipped, backend="venv", device="cpu", pin=False)
    context = setup(typed, {"XDG_CACHE_HOME": "/nowhere"})
    assert isinstance(context.backend, VenvBackend)
    assert context.settings.clocks == LEAVE
    assert not context.settings.pin
    began = setup(replace(typed, pin=True), {"XDG_CACHE_HOME": "/nowhere"}).settings
    assert (began.clocks, began.pin) == (ClockPolicy("base", "max", force=True), True)
    assert setup(replace(typed, pin=None), {"XDG_CACHE_HOME": "/nowhere"}).settings.clocks == ClockPolicy("base", "max")
    fields: dict[str, Any] = dict.fromkeys(("at", "plan", "backend", "device", "device_name", "matrix", "harness"), "")
    header = RunHeader(**fields, measurement=Measurement(), driver=None, python=None, digests={}, clocks=began.clocks)
    assert with_header(context.settings, header).clocks == began.clocks
    assert with_header(context.settings, replace(header, clocks=None)).clocks == LEAVE  # started by an older program
