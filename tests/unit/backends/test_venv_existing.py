"""Interpreters as they are beside venvs: none of them is made, kept or removed."""

from pathlib import Path

import pytest

from runner.backends import installed
from runner.backends import venv as module
from runner.backends.venv import VenvBackend
from runner.core.model import Limits, Provisioned, Spec

SPEC = Spec(environment="a", framework="jax", release="0.8.1+local", interpreter="/opt/a/bin/python")


def provisioned(backend: VenvBackend) -> Provisioned:
    return backend.provision(SPEC, lambda _line: None)


def test_it_is_there_and_its_path_and_release_identify_it(tmp_path: Path) -> None:
    backend = VenvBackend(tmp_path, tmp_path)
    assert backend.survey([SPEC]).cached == {"a"}
    ready = provisioned(backend)
    assert (ready.handle, ready.cached, ready.lock) == ("/opt/a/bin/python", True, b"")
    assert ready.digest == "host:/opt/a/bin/python jax==0.8.1+local"
    assert backend.cache(ready) == str(tmp_path / "caches" / "a")
    assert backend.others_need(ready) == ()
    assert not [*(tmp_path / "venvs").iterdir()]


def test_it_starts_as_its_user_starts_it_and_a_venv_starts_isolated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, bool]] = []

    def start(python: str, _device: str, *, isolated: bool = True, variables: object) -> None:
        assert variables == {}
        started.append((python, isolated))

    monkeypatch.setattr(module, "ProcessChannel", start)
    monkeypatch.setattr(installed, "ProcessChannel", start)
    backend = VenvBackend(tmp_path)
    backend.open(provisioned(backend), Limits(memory=1))
    made = Provisioned(environment="b", framework="jax", handle="/b", digest="sha256:00", seconds=0.0, cached=True)
    backend.open(made, Limits(memory=1))
    assert started == [("/opt/a/bin/python", False), ("/b", True)]
