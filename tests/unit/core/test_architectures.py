"""Architectures by the names that kernels and engines have for them."""

import platform

import pytest

from runner.core.architectures import architecture_of, this_architecture


@pytest.mark.parametrize(
    ("machine", "expected"),
    [("aarch64", "aarch64"), ("arm64", "aarch64"), ("ARM64", "aarch64"), ("amd64", "x86_64"), ("ppc64le", "x86_64")],
)
def test_an_architecture_has_several_names(machine: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert (architecture_of(machine), this_architecture()) == (expected, expected)
