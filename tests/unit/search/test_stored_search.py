"""A search with the same question continues, until it has ended."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from runner.search.explain.state import EXPLANATIONS, ExplainQuestion
from runner.search.stored_search import FILE

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
QUESTION = ExplainQuestion(
    cell="a/b/c/d/fp32", good="jax==1", bad="jax==2", device="cpu", backend="venv", metric="time"
)


def test_the_newest_with_the_same_question_continues_until_it_has_ended(tmp_path: Path) -> None:
    state = EXPLANATIONS.new(tmp_path, QUESTION, NOW)
    state.path.mkdir(parents=True)
    state.untried["jax-2-numpy-1"] = "no solution"
    state.save()
    again = EXPLANATIONS.unfinished(tmp_path, QUESTION)
    assert again == state
    assert EXPLANATIONS.unfinished(tmp_path, replace(QUESTION, metric="memory")) is None
    state.ended = True
    state.save()
    assert EXPLANATIONS.unfinished(tmp_path, QUESTION) is None


def test_a_damaged_file_is_ignored(tmp_path: Path) -> None:
    state = EXPLANATIONS.new(tmp_path, QUESTION, NOW)
    state.path.mkdir(parents=True)
    (state.path / FILE).write_text("{")
    assert list(EXPLANATIONS.states(tmp_path)) == []
