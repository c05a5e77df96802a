"""Environments that are not the same on all hosts are named, with the reason."""

from pathlib import Path
from typing import Any

import pytest

from runner.hosts.collector import Collector, different_builds, save
from runner.hosts.work import archive
from runner.plan.document import plan_document
from runner.store.events import BlockLease
from runner.store.run import Run
from tests.support.fake_hosts import ROUNDS, block, plan
from tests.support.fake_runs import MACHINE, NOW, good

NAME = "torch-1.0"
TEAM = f"registry.example/team@sha256:{'5' * 64}"
FIRST, SECOND, THIRD = (f"sha256:{digit * 64}" for digit in "123")
PULLED = {"digest": FIRST, "team_image": TEAM}
BUILT = {"digest": SECOND, "not_pulled": "registry.example does not answer"}


def _collected(folder: Path, *hosts: dict[str, Any]) -> Run:
    """Return a run in which each host measured a block, with these facts of the environment on each."""
    blocks = [block(number, [NAME]) for number in range(len(hosts))]
    cases = {each.case_id: each.spec for each in blocks}
    run = Run.create(folder / "reports", plan_document(plan(blocks)), cases, MACHINE, {"executor": "fake://"}, NOW)
    for number, (each, facts) in enumerate(zip(blocks, hosts, strict=True), 1):
        document = plan_document(plan([each]))
        stored = Run.create(folder / str(number), document, {each.case_id: each.spec}, MACHINE, {}, NOW)
        for measured_round in range(1, ROUNDS + 1):
            stored.add(good(each.cells[0], measured_round, [0.001], run=stored.id))
        stored.write_environments({NAME: facts})
        lease = BlockLease(
            case_id=each.case_id, number=1, token="0" * 32, host=f"host{number}", device="cpu", device_name="CPU"
        )
        run.note("leased", **lease.event())
        Collector(run).add(lease, save(run, lease, archive(stored)))
    return run


def test_a_host_that_builds_its_image_is_named_with_the_reason(tmp_path: Path) -> None:
    run = _collected(tmp_path, PULLED, BUILT, PULLED)
    (sentence,) = different_builds(run)
    assert sentence == (
        f"{NAME} is not the same on all hosts: sha256:{'5' * 12} on host1, "
        f"sha256:{'2' * 12} on host2 (not pulled: registry.example does not answer)"
    )
    assert run.environments()[NAME] == {**PULLED, "other_builds": [f"sha256:{'2' * 12} on host2"]}


@pytest.mark.parametrize("facts", [PULLED, {"digest": FIRST}])
def test_hosts_with_the_same_image_are_not_named(tmp_path: Path, facts: dict[str, str]) -> None:
    run = _collected(tmp_path, facts, {**facts, "digest": THIRD if "team_image" in facts else facts["digest"]})
    assert different_builds(run) == ()  # engines of other kinds have another id of the same image
    assert run.environments() == {NAME: facts}
