"""What nights remember: simulated histories of one cell whose environment changes every night, with unlimited budget.

``python -m benchmarks.nights`` prints, for a change that comes with the first night and stays, how many histories
report it in the first night, within ten nights and in the tenth, and how often equal cells are reported. A night
measures the cell against its baseline in turns, with the looks and levels of ``runner nightly``. sd is the standard
deviation of a round's log ratio.
"""

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.stopping import measured
from runner.analysis import statistics
from runner.analysis.model import MIN_ROUNDS
from runner.workflows.nightly.confirmation import MAX_ROUNDS

LOOKS = statistics.looks(MIN_ROUNDS, MAX_ROUNDS)
NIGHTS = 10
Floats = NDArray[np.float64]


def verdicts_in_turns(draw: np.random.Generator, differences: Floats, sd: float) -> list[statistics.Verdict]:
    """Return the verdict of each of P pairs, given their true log ratios (P,), at the look that decides or the last."""
    rounds = draw.normal(differences[:, None], sd, (len(differences), MAX_ROUNDS))
    return list(measured(rounds, LOOKS).words)


def histories(draw: np.random.Generator, change: float, sd: float, count: int, moves: Callable[[str], bool]) -> Floats:
    """Return whether each history reports the cell as slower in each night, (count, NIGHTS).

    Args:
        draw: the random numbers.
        change: how much slower the cell is from the first night on; 0.05 is five in a hundred.
        sd: standard deviation of a round's log ratio.
        count: how many histories.
        moves: whether a night with this verdict becomes the baseline.
    """
    distance = np.full(count, np.log1p(change))  # of tonight from the baseline
    reported = np.zeros((count, NIGHTS))
    for night in range(NIGHTS):
        verdicts = verdicts_in_turns(draw, distance, sd)
        reported[:, night] = [verdict == "slower" for verdict in verdicts]
        distance = np.where([moves(verdict) for verdict in verdicts], 0.0, distance)
    return reported


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw = np.random.default_rng(arguments.seed)
    rules: dict[str, Callable[[str], bool]] = {
        "moves on same and faster": lambda verdict: verdict in ("same", "faster"),
        "moves on anything but slower": lambda verdict: verdict != "slower",
    }
    print("| baseline | change | sd | first night | within 10 nights | in night 10 | reports in 1,000 nights |")
    print("|---|---|---|---|---|---|---|")
    for rule, moves in rules.items():
        for change, sd in ((0.05, 0.04), (0.05, 0.02), (0.03, 0.04), (0.0, 0.01), (0.0, 0.02), (0.0, 0.04)):
            reported = histories(draw, change, sd, arguments.histories, moves)
            first, within, last = reported[:, 0].mean(), reported.any(axis=1).mean(), reported[:, -1].mean()
            shares = " | ".join(f"{share:.1%}" for share in (first, within, last))
            print(f"| {rule} | {change:.0%} | {sd:.0%} | {shares} | {1000 * reported.mean():.1f} |")


if __name__ == "__main__":
    main()
