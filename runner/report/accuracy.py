"""How close each implementation came to the float64 reference, at its worst."""

from dataclasses import dataclass
from typing import NamedTuple

from runner.comparison import Results
from runner.report import words

HEAD = ("environment", "implementation", "precision", "loss error", "in", "gradient error", "in")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """The largest errors of an implementation in an environment, over all cells and rounds, failed ones too.

    Attributes:
        loss_error: |loss - reference| / |reference|, the largest over the checked steps; None where none was recorded.
        gradient_error: norm of the difference over the norm of the reference, the largest over the parameters.
        loss_case: where it was; empty where there is none. ``gradient_case`` likewise.
        failed: whether the larger of them is from a cell that failed the check.
    """

    environment: str
    implementation: str
    precision: str
    loss_error: float | None
    loss_case: str
    gradient_error: float | None
    gradient_case: str
    failed: bool


class _Worst(NamedTuple):
    error: float | None = None
    case: str = ""
    failed: bool = False


Key = tuple[str, str, str]
"""Environment, implementation, precision."""


def accuracy(results: Results) -> tuple[Accuracy, ...]:
    """Return a row for each environment, implementation and precision of a run that recorded an error.

    Environments stand in the plan's order, their implementations by name.
    """
    losses, gradients = _worst(results, "loss_error"), _worst(results, "gradient_error")
    order = {name: place for place, name in enumerate(dict.fromkeys(one.cell.environment for one in results.plan))}
    rows = (
        _row(key, losses.get(key, _Worst()), gradients.get(key, _Worst()))
        for key in dict.fromkeys((*losses, *gradients))
    )
    return tuple(sorted(rows, key=lambda row: (order.get(row.environment, len(order)), row.implementation)))


def _row(key: Key, of_loss: _Worst, of_gradient: _Worst) -> Accuracy:
    environment, implementation, precision = key
    return Accuracy(
        environment=environment,
        implementation=implementation,
        precision=precision,
        loss_error=of_loss.error,
        loss_case=of_loss.case,
        gradient_error=of_gradient.error,
        gradient_case=of_gradient.case,
        failed=of_loss.failed or of_gradient.failed,
    )


def _worst(results: Results, column: str) -> dict[Key, _Worst]:
    """Return the largest error in a column, over good records and failed ones."""
    found: dict[Key, _Worst] = {}
    for frame, failed in ((results.rounds, False), (results.failures, True)):
        known = frame[frame[column].notna()]
        places = known.groupby(["environment", "implementation", "precision"], observed=True)[column].idxmax()
        for row in known.loc[places].itertuples():
            key = (str(row.environment), str(row.implementation), str(row.precision))
            worst = _Worst(float(getattr(row, column)), f"{row.workload}/{row.case}", failed)
            found[key] = max(found.get(key, worst), worst, key=lambda one: one.error or 0.0)
    return found


def text(rows: tuple[Accuracy, ...]) -> str:
    """Return the rows as lines for a terminal or a file, in columns."""
    lines = [HEAD, *(_line(row) for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(HEAD))]
    padded = ("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded) + "\n"


def _line(row: Accuracy) -> tuple[str, ...]:
    return (
        row.environment,
        row.implementation,
        row.precision,
        words.error(row.loss_error),
        row.loss_case or words.DASH,
        words.error(row.gradient_error),
        row.gradient_case or words.DASH,
    )
