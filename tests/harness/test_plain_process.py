"""Cells in fresh interpreters, through the real protocol, under real interpreters."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.harness import plain
from runner.measure.session import Session
from tests.harness.conftest import VERSIONS, Ask, environment, request
from tests.harness.test_server import FAILURES_OF_A_PROCESS, to_its_end

CHECKED = ("loss", "reference_loss", "loss_error", "forward_error", "gradient_errors", "digest", "check_seconds")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_control_is_timed_under_each_python_and_nothing_is_verified(
    version: str, open_session: Callable[[str], Session], tmp_path: Path
) -> None:
    interpreter = environment(version)
    if interpreter is None:
        pytest.skip(f"no Python {version} on this machine")
    session = open_session(interpreter)
    plain = {"process": "plain", "already_verified": True, "turns": True}
    reply = to_its_end(session, request(session, "sound", tmp_path, **plain))
    assert reply["status"] == "ok", reply
    assert reply["process"] == "plain"
    assert len(reply["seconds"]) == sum(reply["turns"]) >= 3
    assert not set(CHECKED) & set(reply)
    assert session.known == set()  # no reference was sent
    assert request(session, "sound", tmp_path)["process"] == "fork"


def test_a_cell_is_verified_by_another_process_before_it_is_timed(ask: Ask) -> None:
    reply = ask("sound", process="plain")
    assert (reply["status"], reply["process"]) == ("ok", "plain"), reply
    assert set(CHECKED) <= set(reply)
    assert reply["loss_error"] < 1e-6
    assert len(reply["seconds"]) >= 3
    for slug in ("wrong-gate", "lost-bias", "idle-forward"):
        wrong = ask(slug, process="plain")
        assert (wrong["status"], wrong["class"]) == ("failed", "wrong-result"), slug
        assert "seconds" not in wrong


@pytest.mark.parametrize("phase", ["forward", "gradient", "train"])
def test_each_phase_is_timed_and_verified(phase: str, ask: Ask) -> None:
    reply = ask("sound", process="plain", phase=phase)
    assert (reply["status"], reply["process"]) == ("ok", "plain"), reply
    assert reply["forward_error"] < 1e-6
    assert reply["gradient_errors"]


@pytest.mark.parametrize(("slug", "kind", "words"), FAILURES_OF_A_PROCESS)
def test_its_failure_has_its_class_and_the_server_continues(
    slug: str, kind: str, words: str, open_session: Callable[[str], Session], python: str, ask: Ask
) -> None:
    session = open_session(python)
    reply = ask(slug, session, process="plain", already_verified=True)
    assert (reply["status"], reply["class"]) == ("failed", kind), reply
    assert words in reply["reason"]
    assert ask("sound", session, process="plain", already_verified=True)["status"] == "ok"


def test_its_limits_are_those_of_a_forked_child(ask: Ask) -> None:
    late = ask("hangs", process="plain", already_verified=True, timeout=1.5)
    assert (late["class"], late["reason"]) == ("timeout", "not finished after 1.5 s")
    large = ask("hogs", process="plain", already_verified=True, memory=300 << 20)
    assert large["class"] == "oom", large
    assert ask("leaves-process", process="plain", already_verified=True)["status"] == "ok"


def test_compiling_ahead_for_a_plain_cell_is_a_forked_child(ask: Ask) -> None:
    compiled = ask("sound", process="plain", precompile=True)
    assert (compiled["status"], compiled["seconds"], compiled["process"]) == ("ok", [], "fork")


def test_it_has_the_folders_of_its_environment_and_one_of_its_own(ask: Ask, tmp_path: Path) -> None:
    reply = ask("names-caches", process="plain", already_verified=True)
    assert reply["status"] == "ok", reply
    assert str(tmp_path / "cuda_cache_path") in reply["log"]


def test_each_process_has_another_heap_of_at_most_some_megabytes() -> None:
    heaps = [plain.other_heap() for _ in range(50)]
    assert len({len(objects) for objects, _ in heaps}) > 20
    assert len({len(blocks) for _, blocks in heaps}) > 5
    assert any(not blocks for _, blocks in heaps)
    assert max(sum(map(len, blocks)) for _, blocks in heaps) <= 8 << 20
