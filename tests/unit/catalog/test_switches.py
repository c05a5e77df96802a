"""The switches: every row can be set by a user, names its source, and applies where it says."""

import pytest
from packaging.specifiers import SpecifierSet

from runner.catalog.switches import Switch, applying, switches
from runner.core.variables import is_name, refusal
from runner.matrix import FRAMEWORKS


@pytest.mark.parametrize("switch", switches(), ids=lambda switch: switch.name)
def test_each_switch_can_be_set_and_names_its_source(switch: Switch) -> None:
    for name, value in switch.variables.items():
        assert is_name(name)
        assert refusal(name) == ""
        assert value
    assert switch.sentence
    assert switch.source
    assert set(switch.frameworks) <= set(FRAMEWORKS)
    assert switch.frameworks
    assert switch.device in ("any", "cpu", "cuda")
    SpecifierSet(switch.releases)


def test_names_are_unique() -> None:
    names = [switch.name for switch in switches()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("release", "device", "has"),
    [("0.4.31", "cpu", False), ("0.4.33", "cpu", True), ("0.7.0", "cpu", False), ("0.4.33", "cuda", False)],
)
def test_a_switch_applies_to_the_releases_and_the_device_that_have_it(release: str, device: str, has: bool) -> None:  # noqa: FBT001
    names = {switch.name for switch in applying("jax", release, device, ())}
    assert ("no-thunks" in names) == has


def test_a_switch_that_needs_a_processor_is_left_out_on_others() -> None:
    without, with_it = (
        {each.name for each in applying("torch", "2.8.0", "cpu", flags)} for flags in ((), ("avx512f",))
    )
    assert with_it - without == {"onednn-avx2", "aten-avx2"}


def test_a_release_that_is_no_version_has_every_switch() -> None:
    assert "not-compiled" in {switch.name for switch in applying("torch", "2.*", "cpu", ())}
