"""The command line, where every verdict stays open: ``python -m tests.faults.open_verdicts [ARGUMENTS ...]``.

Whether a verdict is open depends on the noise of a machine; here a run measures further rounds on each.
"""

from collections.abc import Sequence

from runner.analysis.comparison_model import Comparison
from runner.analysis.stopping import StoppingRule
from runner.core.model import Cell


def all_cells(
    rule: StoppingRule, _comparisons: Sequence[Comparison], _rounds: int, _remaining: float, _pace: float
) -> tuple[frozenset[Cell], str]:
    """Return all cells, and no reason to stop; see ``StoppingRule.decide``."""
    return frozenset(rule.round_seconds), ""


def main() -> None:
    """Run the command line with open verdicts."""
    StoppingRule.decide = all_cells  # type: ignore[method-assign,assignment]
    from runner.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
