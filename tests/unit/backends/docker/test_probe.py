"""What an image answers when it is asked for its frameworks, without an engine."""

from collections.abc import Iterator
from typing import Any

import pytest

from runner.backends.docker import probe as module
from runner.backends.docker.probe import probe
from runner.core.errors import EngineError, Problem, UsageError
from runner.core.model import Limits, Provisioned

NO_FILE = "OCI runtime create failed: exec: python3: executable file not found in $PATH"


class Answers:
    """A container whose Python prints some lines; of images without a ``python3``, ``python`` alone starts."""

    lines: Iterator[bytes]
    words_at_end = "No module named numpy"
    refused: dict[str, str]
    started: list[tuple[str, str]]
    closed: int

    def __init__(self, ready: Provisioned, limits: Limits, owner: str, program: bytes) -> None:
        """Start a container."""
        assert (limits.device, owner) == ("cpu", "me")
        assert b"find_spec" in program
        python = ready.facts["interpreter"]
        self.started.append((ready.handle, python))
        if python in self.refused:
            raise EngineError(Problem(self.refused[python]))

    def receive(self, timeout: float) -> bytes | None:
        """Return the next line."""
        assert timeout > 0
        line = next(self.lines, None)
        if line == b"silence":
            raise TimeoutError
        return line

    def words(self) -> str:
        """Return the end of stderr."""
        return self.words_at_end

    def close(self) -> None:
        """Count the containers that ended."""
        type(self).closed += 1


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch) -> type[Answers]:
    """The container that is started; the engine has each image but ``gone``."""
    of_test: Any = type("AnswersOfTest", (Answers,), {"refused": {}, "started": [], "closed": 0, "lines": iter(())})
    monkeypatch.setattr(module, "DockerChannel", of_test)
    monkeypatch.setattr(module, "connect", type("Client", (), {"close": lambda _: None}))
    monkeypatch.setattr(module, "inspect", lambda _, name: None if name == "gone:1" else {"Id": f"sha256:{name}"})
    kind: type[Answers] = of_test
    return kind


def test_the_first_framework_is_the_answer_whatever_is_printed_before(container: type[Answers]) -> None:
    container.lines = iter([b"a banner", b"numpy 2.4.6 3.11 jax,numpy", b"jax 0.8 3.11 jax"])
    held = probe("x:1", "x-1", "numpy", "me")
    assert (held.framework, held.release, held.python, held.image) == ("numpy", "2.4.6", "python3", "x:1")
    assert (held.others, held.source) == (("jax",), "x:1")
    assert (container.started, container.closed) == ([("sha256:x:1", "python3")], 1)


def test_a_python_that_has_another_name_is_started(container: type[Answers]) -> None:
    container.refused = {"python3": NO_FILE}
    container.lines = iter([b"numpy 1.16 3.6 numpy"])
    assert probe("x:1", "x-1", None, "me").python == "python"
    container.refused["python"] = NO_FILE
    with pytest.raises(UsageError, match="x:1 has no python3 and no python"):
        probe("x:1", "x-1", None, "me")


def test_an_engine_that_is_gone_says_nothing_about_the_image(container: type[Answers]) -> None:
    container.refused = {"python3": "cannot start a container: connection refused"}
    with pytest.raises(EngineError, match="connection refused"):
        probe("x:1", "x-1", None, "me")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "x:1 cannot import numpy; No module named numpy"),
        ([b"os 1.0 3.11 numpy"], "x:1 cannot import numpy"),
        ([b"silence"], "x:1 did not say within 120 s"),
    ],
)
def test_no_answer_is_a_sentence(lines: list[bytes], message: str, container: type[Answers]) -> None:
    container.lines = iter(lines)
    with pytest.raises(UsageError) as caught:
        probe("x:1", "x-1", "numpy", "me")
    assert message in caught.value.problems[0].message
    assert container.closed == 1


def test_an_image_that_the_engine_lacks_is_not_pulled(container: type[Answers]) -> None:
    with pytest.raises(UsageError, match="this engine has no image gone:1") as caught:
        probe("gone:1", "gone-1", None, "me")
    assert "`docker pull gone:1`" in (caught.value.problems[0].hint or "")
    assert container.started == []
