"""The operators that changed most are named with their times on both sides."""

from pathlib import Path

from runner.analysis.profile_changes import ComparedOperator, OperatorChanges, OperatorTime
from runner.search.explain.operators import SHOWN, operator_changes, sentences


def test_the_largest_changes_are_named_and_small_ones_are_not() -> None:
    operators = tuple(
        ComparedOperator(f"op{number}", OperatorTime(1, 0.1), OperatorTime(1, 0.1 + change))
        for number, change in enumerate((0.5, 0.3, -0.2, 0.1, 0.0001))
    )
    changes = OperatorChanges(clock="host", operators=operators, base_seconds=1.0, other_seconds=1.7)
    none = OperatorChanges(clock="device", operators=operators[-1:], base_seconds=1.0, other_seconds=1.0)
    (sentence,) = sentences((changes, none))
    assert sentence.startswith("operators per step on the host, by their profiles: op0 100 ms to 600 ms; op1 ")
    assert sentence.count(";") == SHOWN - 1


def test_an_operator_of_one_side_alone_has_no_time_on_the_other() -> None:
    alone = (ComparedOperator("while", None, OperatorTime(1, 0.5)),)
    changes = OperatorChanges(clock="host", operators=alone, base_seconds=0.1, other_seconds=0.5)
    assert list(sentences([changes])) == ["operators per step on the host, by their profiles: while none to 500 ms"]


def test_a_run_without_profiles_has_no_operators(tmp_path: Path) -> None:
    assert operator_changes(tmp_path, "a/b/c/d/e/f", "g/b/c/d/e/f") == ()
