"""What is said of a gate that does not pass."""

import pytest

from runner.analysis.gate import GateResult, parse_conditions
from runner.report.gate_text import problems


def messages(text: str) -> list[str]:
    """Return what a gate says that had nothing to compare."""
    conditions = parse_conditions([text])
    result = GateResult(conditions, (), 0, tuple(each for each in conditions if each.metric))
    return [each.message for each in problems(result, {})]


@pytest.mark.parametrize("text", ["slower", "slower:5%,energy:2%", "undecided"])
def test_a_gate_without_any_time_says_that_nothing_was_measured_in_two_releases(text: str) -> None:
    assert messages(text) == ["--fail-on: no test was measured in two releases, so the gate does not pass"]


def test_a_metric_that_no_test_has_is_named_with_its_reason() -> None:
    [of_energy, of_instructions] = messages("energy:2%,instructions")
    assert of_energy.startswith("--fail-on energy:2%: no test has ")
    assert "GPU" in of_energy
    assert of_instructions.startswith("--fail-on instructions: no test has ")
