"""Frameworks that crash, hang, print, fork and leave things behind, each in one measurement."""

import pytest

from tests.faults.bench import HOST, SMALL, Bench
from tests.faults.children import misbehaving
from tests.faults.declared.children import CHILD_FAULTS
from tests.faults.fault import Fault


@pytest.mark.parametrize("fault", CHILD_FAULTS, ids=lambda fault: fault.id)
def test_a_framework(fault: Fault, bench: Bench) -> None:
    misbehaving(bench, fault.id.removeprefix("child-"))
    done = bench("run", *SMALL, *HOST)
    assert (bench.folder / "misbehaved").exists()
    bench.check(done)
    assert len(done.stderr) < 20_000
    assert "\x1b" not in done.stderr
