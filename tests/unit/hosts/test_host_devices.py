"""What a device offers is checked: one whose offer has another shape takes no part, and the others go on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.core.progress import Progress
from runner.hosts import tasks
from runner.hosts.executors.executor import Completion
from runner.hosts.host_devices import Devices
from tests.support.fake_hosts import FakeHosts, block, offer, plan

Change = Callable[[dict[str, Any]], object]
CHANGES: dict[str, Change] = {
    "a name that is a number": lambda it: it.update(device_name=7),
    "a host that is a list": lambda it: it.update(host=[]),
    "no driver": lambda it: it.pop("driver"),
    "notes that are an object": lambda it: it.update(notes={"a": 1}),
    "a plan that is a text": lambda it: it.update(plan="all"),
    "a plan without cells": lambda it: it["plan"].pop("cells"),
    "a cell that is a number": lambda it: it["plan"]["cells"].append(7),
    "a cell without its parts": lambda it: it["plan"]["cells"][0].pop("environment"),
    "seconds that are a text": lambda it: it["plan"]["cells"][0].update(seconds="soon"),
    "a verdict of its own": lambda it: it["plan"]["cells"][0].update(verdict="maybe"),
    "cells without their cases": lambda it: it.update(cases={}),
    "cases that are a list": lambda it: it.update(cases=[1]),
    "a measurement with a key of its own": lambda it: it["measurement"].update(rounds="many"),
    "a measurement that is null": lambda it: it.update(measurement=None),
    "launches that are a list": lambda it: it["plan"].update(launches=[1]),
    "a launch that is a text": lambda it: it["plan"].update(launches={"np": "x"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_offer_of_another_shape_takes_no_part_and_others_do(tmp_path: Path, name: str) -> None:
    lines: list[str] = []
    good = offer(plan([block(0)]), "good")
    hosts = FakeHosts({"bad": good, "good": good}, tmp_path)
    devices = Devices(executor=hosts, project=b"", options={}, progress=Progress(lines.append))
    devices.update()
    completions = {completion.key: completion for completion in hosts.completed(0.0)}
    sent = completions["bad"].result
    assert sent is not None
    head, _, rest = sent.partition(b"\n")
    document = json.loads(rest)
    CHANGES[name](document)
    assert devices.take_offer(Completion("bad", head + b"\n" + json.dumps(document).encode())) is None
    assert devices.refused == {"bad"}
    assert any("bad takes no part: " in line for line in lines)
    assert devices.take_offer(completions["good"]) == good


def test_an_offer_arrives_as_it_was_sent() -> None:
    sent = offer(plan([block(0), block(1)]), "a", notes=("the clocks are left",), made=("np",))
    assert tasks.decode(tasks.encode(sent)) == sent
