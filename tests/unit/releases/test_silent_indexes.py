"""An index that does not answer is asked once, and again after a while."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
import requests

from runner.releases.silent_indexes import ASKED_AGAIN_SECONDS, answers

INDEX = "https://index.test/cpu"


class Answer(SimpleNamespace):
    """What ``requests.head`` returns."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close nothing."""


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The addresses that were asked; what they answer is appended to the list as a status, or an exception."""
    addresses: list[Any] = []

    def head(address: str, **_: object) -> Answer:
        status = addresses.pop()
        addresses.append(address)
        if isinstance(status, int):
            return Answer(status_code=status)
        raise status

    monkeypatch.setattr(requests, "head", head)
    return addresses


@pytest.mark.parametrize("status", [200, 404])
def test_an_index_that_answers_is_asked_each_time(status: int, requested: list[Any], tmp_path: Path) -> None:
    for _ in range(2):
        requested.append(status)
        assert answers(INDEX, tmp_path)
    assert requested == [INDEX, INDEX]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("status", [503, requests.ConnectionError(), requests.Timeout()])
def test_one_that_does_not_is_left_alone_for_a_while(status: Any, requested: list[Any], tmp_path: Path) -> None:
    requested.append(status)
    assert not answers(INDEX, tmp_path / "new")
    assert not answers(INDEX, tmp_path / "new")
    assert requested == [INDEX]
    (note,) = (tmp_path / "new").iterdir()
    old = note.stat().st_mtime - ASKED_AGAIN_SECONDS - 1
    os.utime(note, (old, old))
    requested.append(200)
    assert answers(INDEX, tmp_path / "new")
    assert not note.exists()
