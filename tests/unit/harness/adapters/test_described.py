"""A fact that a release does not have is not known, and ends nothing."""

from types import SimpleNamespace
from typing import Any

import pytest

from runner.harness.adapters.described import known, of
from runner.harness.errors import CellFailure


def broken(*_: object) -> dict[str, Any]:
    raise AttributeError("module 'keras.api._v2.keras' has no attribute '__version__'")


def no_device(*_: object) -> dict[str, Any]:
    raise CellFailure("device", "sees no GPU")  # type: ignore[no-untyped-call]


def test_what_cannot_be_read_is_left_out() -> None:
    assert known(broken) == {}
    assert known(lambda device: {"device": device}, "cpu") == {"device": "cpu"}


def test_a_device_that_is_missing_is_no_missing_description() -> None:
    with pytest.raises(CellFailure):
        known(no_device)
    with pytest.raises(CellFailure):
        of(SimpleNamespace(facts=no_device), "1.0", "cpu")


def test_an_adapter_that_describes_nothing_still_has_its_version_on_a_cpu() -> None:
    assert of(SimpleNamespace(facts=broken), "2.13.1", "cpu") == {"version": "2.13.1"}
    assert of(SimpleNamespace(facts=lambda _: {"version": "2.13", "keras": "2.13.1"}), "2.13.1", "cpu") == {
        "version": "2.13",
        "keras": "2.13.1",
    }


def test_on_a_gpu_reading_facts_finds_out_whether_it_can_be_used() -> None:
    with pytest.raises(AttributeError):
        of(SimpleNamespace(facts=broken), "2.13.1", "cuda")
