"""The table, the sentences, the exit code and the JSON of an explanation."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from runner.analysis.comparison_model import Row, Verdict
from runner.search.explain.candidates import Candidate
from runner.search.explain.result import Explanation, Tried
from runner.search.explain.shares import CandidateEffect, Effect, Share
from runner.search.explain.state import ExplainQuestion
from tests.support.fake_runs import cell

QUESTION = ExplainQuestion(
    cell="a/b/c/d/fp32", good="jax==1", bad="jax==2", device="cpu", backend="venv", metric="time"
)


def row(verdict: Verdict, ratio: float = 0.5) -> Row:
    return Row(
        base=cell("torch-new"),
        other=cell("torch-old"),
        ratio=ratio,
        ratio_low=ratio * 0.9,
        ratio_high=ratio * 1.1,
        rounds=8,
        verdict=verdict,
        reason="open after 8 rounds",
    )


def tried(name: str, effect: Effect, estimate: float | None, reason: str = "") -> Tried:
    share = None if estimate is None else Share(estimate, estimate - 0.02, estimate + 0.02)
    candidate = Candidate(name=name, kind="switch", change=f"{name.upper()}=1", sentence="no threads", source="a/b#1")
    measured = CandidateEffect(row=row("inconclusive"), effect=effect, share=share, reason=reason)
    return Tried(candidate=candidate, environment=f"new-{name}", measured=measured)


def explanation(verdict: Verdict = "faster", ratio: float = 0.5, *of: Tried) -> Explanation:
    return Explanation(
        id="x",
        folder=Path("reports/explain/x"),
        question=QUESTION,
        change=row(verdict, ratio),
        tried=of,
        together=None,
        analyses=(),
    )


SEVERAL = (
    tried("none", "nothing", 0.01),
    tried("wrong", "changes the result", None, "its losses differ"),
    tried("most", "takes back", 0.83),
)


def test_the_table_has_what_takes_back_most_first() -> None:
    text = explanation("faster", 0.5, *SEVERAL).text()
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[3:6]] == ["most", "none", "wrong"]
    assert lines[3].split()[:6] == ["most", "83", "%", "81", "%", "to"]
    assert "jax==2 is 2.00x slower" in text
    assert "MOST=1 takes back 83 % (81 % to 85 %) of it: no threads (a/b#1)" in text
    assert "WRONG=1 changes the result, so it is no explanation: its losses differ" in text
    assert "of 3 candidates, at most 5 %" in text


def test_what_could_not_be_tried_is_listed_with_its_reason() -> None:
    candidate = Candidate(name="numpy-1", kind="package", change="numpy 1", pins=("numpy==1",))
    lacking = Tried(candidate=candidate, environment="new-numpy-1", reason="no solution", also=("scipy 1",))
    text = explanation("faster", 0.5, *SEVERAL, lacking).text()
    assert "numpy 1, with scipy 1: no solution" in text
    assert "of 3 candidates" in text


@pytest.mark.parametrize(
    ("verdict", "ratio", "code", "sentence"),
    [
        ("same", 1.0, 0, "do not differ"),
        ("slower", 2.0, 0, "there is nothing to take back"),
        ("inconclusive", 0.9, 1, "is not decided: open after 8 rounds"),
    ],
)
def test_without_a_change_a_sentence_says_so(verdict: Verdict, ratio: float, code: int, sentence: str) -> None:
    without = explanation(verdict, ratio, *SEVERAL)
    assert without.exit_code == code
    (output,) = without.sentences()
    assert sentence in output
    assert "takes back" not in without.text()


def test_the_exit_code_says_whether_something_takes_the_change_back() -> None:
    assert explanation("faster", 0.5, *SEVERAL).exit_code == 0
    nothing = explanation("faster", 0.5, *SEVERAL[:2])
    assert nothing.exit_code == 1
    assert "none of 2 candidates takes it back" in nothing.text()


def test_what_is_measured_together_stands_last() -> None:
    both = replace(explanation("faster", 0.5, *SEVERAL), together=tried("together", "takes back", 1.0))
    assert "together they take back 100 % (98 % to 102 %) of it" in both.text()
    document = json.loads(json.dumps(both.json()))
    assert document["together"]["share"]["estimate"] == 1.0
    assert document["change"]["ratio"] == 2.0
    assert document["change"]["ratio_low"] < 2.0 < document["change"]["ratio_high"]
    assert [each["effect"] for each in document["candidates"]] == ["nothing", "changes the result", "takes back"]
