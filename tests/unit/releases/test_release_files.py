"""When a release was uploaded, and for which Pythons it is, as the index tells it."""

import io
import json
import platform
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, NoReturn, Self

import pytest
import requests
import urllib3

from runner.releases import release_files
from runner.releases.release_files import as_of, default_index, has_wheel, pythons_of

TODAY = date(2026, 11, 26)
FILES = [
    {"filename": "jax-0.4.13.tar.gz", "upload-time": "2023-06-23T00:24:04Z"},
    {"filename": "jax-0.4.16-py3-none-any.whl", "upload-time": "2023-09-19T10:00:00.5Z"},
    {"filename": "jax-0.4.16-1-py3-none-any.whl", "upload-time": "2023-09-18T10:00:00Z"},
    {"filename": "jax-0.10.2-py3-none-any.whl", "upload-time": "2026-11-01T10:00:00Z"},
    {"filename": "jax-0.5.0-py3-none-any.whl"},
    {"filename": "jax-0.1-cp27-cp27mu-manylinux1_x86_64.whl"},
    {"filename": "jax-0.1-cp36-cp36m-manylinux1_x86_64.whl"},
    {"filename": "jax-0.1-cp310-cp310-manylinux1_x86_64.whl"},
    {"filename": "jax-0.1-cp39-cp39-macosx_11_0_x86_64.whl"},
    {"filename": "jax-0.1-cp38-cp38-manylinux2014_aarch64.whl"},
    {"filename": "no wheel.whl", "upload-time": "2023-09-19T10:00:00Z"},
    {"filename": f"jax-{'9' * 5000}-py3-none-any.whl", "upload-time": "2023-09-19T10:00:00Z"},
    {"filename": f"jax-0.4.16-{'9' * 5000}-py3-none-any.whl", "upload-time": "2023-09-19T10:00:00Z"},
    {"filename": "jax-0.6.0-py3-none-any.whl", "upload-time": "9999-12-31T23:59:59Z"},
    {"filename": "jax-0.7.0-py3-none-any.whl", "requires-python": ">=3.10.1"},
    {"filename": "jax-0.7.1-py3-none-any.whl", "requires-python": "3.10 or newer"},
    {"filename": "jax-0.7.1-cp311-cp311-win_amd64.whl"},
]


class Answer:
    """What ``requests.get`` returns."""

    def __init__(self, content: bytes) -> None:
        """Take what its connection gives."""
        self.raw = urllib3.HTTPResponse(io.BytesIO(content), preload_content=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.raw.close()

    def raise_for_status(self) -> None:
        """Raise nothing."""


@pytest.fixture(autouse=True)
def _index_of_uv(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the real uv prints for its default index, whose address this project does not name."""
    default_index.cache_clear()
    answer = subprocess.CompletedProcess([], 0, "--index-url https://index.test/simple\n", "")
    monkeypatch.setattr(release_files, "run_client", lambda *_: answer)
    yield
    default_index.cache_clear()


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that are requested; each answers FILES."""
    requested: list[str] = []

    def get(address: str, **_: Any) -> Answer:
        requested.append(address)
        return Answer(json.dumps({"files": FILES}).encode())

    monkeypatch.setattr(requests, "get", get)
    return requested


def test_a_release_has_the_packages_of_six_weeks_after_its_first_wheel(addresses: list[str]) -> None:
    assert as_of("jax", "0.4.16", TODAY, {}) == date(2023, 10, 30)
    assert addresses == ["https://index.test/simple/jax/"]


@pytest.mark.parametrize("version", ["0.10.2", "0.5.0", "0.4.13", "9.9", "0.6.0"])
def test_a_new_release_and_one_of_an_unknown_day_have_the_packages_of_today(version: str, addresses: list[str]) -> None:
    assert as_of("jax", version, TODAY, {}) is None


def test_a_release_has_the_pythons_of_its_wheels_for_this_platform(
    addresses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert pythons_of("jax", "0.1", {}) == ("2.7", "3.6", "3.10")
    assert pythons_of("jax", "0.7.0", {}) == ("3.10", "3.11", "3.12", "3.13", "3.14")
    assert len(addresses) == 2


@pytest.mark.parametrize(
    ("version", "python", "expected"),
    [
        ("0.4.16", "3.11", True),
        ("0.4.13", "3.11", False),
        ("9.9", "3.11", False),
        ("0.7.0", "3.10", True),
        ("0.7.0", "3.9", False),
        ("0.7.1", "3.11", False),
        ("0.1", "3.6", sys.platform == "linux" and platform.machine() == "x86_64"),
        ("0.1", "3.9", False),
    ],
)
def test_a_release_has_a_wheel_for_a_python(version: str, python: str, *, expected: bool, addresses: list[str]) -> None:
    assert has_wheel("jax", version, python, {}) is expected


@pytest.mark.usefixtures("addresses")
def test_a_release_has_wheels_for_an_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(release_files, "platform_tags", lambda: iter(["manylinux2014_x86_64", "linux_x86_64"]))
    assert pythons_of("jax", "0.1", {}, "aarch64") == ("3.8",)
    assert has_wheel("jax", "0.1", "3.8", {}, "aarch64")
    assert not has_wheel("jax", "0.1", "3.8", {})
    assert has_wheel("jax", "0.7.0", "3.11", {}, "aarch64")


def test_the_index_of_the_user_is_asked(addresses: list[str]) -> None:
    as_of("JAX_x", "1", TODAY, {"PIP_INDEX_URL": "https://a.test/simple/", "UV_DEFAULT_INDEX": "https://b.test"})
    assert addresses == ["https://b.test/jax-x/"]


@pytest.mark.parametrize(
    "content", [b"<html>", b"[]", b"{}", b'{"files": [7]}', b"[" * 100_000, b"\xff", b'{"files": [{"filename": 7}]}']
)
def test_an_answer_of_another_form_is_none(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "get", lambda *_, **__: Answer(content))
    assert as_of("jax", "0.4.16", TODAY, {}) is None


def failing(error: BaseException) -> Callable[..., NoReturn]:
    def get(*_: object, **__: object) -> NoReturn:
        raise error

    return get


@pytest.mark.parametrize(
    "error",
    [
        requests.ConnectTimeout(),
        urllib3.exceptions.ProtocolError("it broke off"),
        urllib3.exceptions.DecodeError("it is no gzip"),
        UnicodeError("a label of a host is too long"),
    ],
)
def test_an_index_that_does_not_answer_is_none(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "get", failing(error))
    assert release_files.as_of("jax", "0.4.16", TODAY, {}) is None


def test_an_index_that_answers_slowly_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(release_files, "ALL_SECONDS", 0.01)
    monkeypatch.setattr(requests, "get", lambda *_, **__: ended.wait())
    assert release_files.as_of("jax", "0.4.16", TODAY, {}) is None
    ended.set()


@pytest.mark.parametrize("answer", [OSError("no uv"), subprocess.TimeoutExpired("uv", 20), ""])
def test_where_uv_names_no_index_nothing_is_known(
    answer: Exception | str, addresses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> "subprocess.CompletedProcess[str]":
        if isinstance(answer, Exception):
            raise answer
        return subprocess.CompletedProcess([], 2, answer, "an option that it does not know")

    monkeypatch.setattr(release_files, "run_client", run)
    assert as_of("jax", "0.4.16", TODAY, {}) is None
    assert not addresses
