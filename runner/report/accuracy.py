"""How close each implementation came to the float64 reference, at its worst."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

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


@dataclass(frozen=True, slots=True)
class _Worst:
    error: float | None = None
    case: str = ""
    failed: bool = False

    def or_worse(self, error: float, case: str, *, failed: bool) -> "_Worst":
        if np.isnan(error) or (self.error is not None and self.error >= error):
            return self
        return _Worst(error, case, failed)


def accuracy(results: Results) -> tuple[Accuracy, ...]:
    """Return a row for each environment, implementation and precision of a run that recorded an error.

    Environments stand in the plan's order, their implementations by name.
    """
    worst: dict[tuple[str, str, str], tuple[_Worst, _Worst]] = {}
    for key, case, loss, gradient, failed in _errors(results):
        of_loss, of_gradient = worst.get(key, (_Worst(), _Worst()))
        worst[key] = of_loss.or_worse(loss, case, failed=failed), of_gradient.or_worse(gradient, case, failed=failed)
    order = {name: place for place, name in enumerate(dict.fromkeys(one.cell.environment for one in results.plan))}
    rows = (
        Accuracy(
            environment=environment,
            implementation=implementation,
            precision=precision,
            loss_error=of_loss.error,
            loss_case=of_loss.case,
            gradient_error=of_gradient.error,
            gradient_case=of_gradient.case,
            failed=of_loss.failed or of_gradient.failed,
        )
        for (environment, implementation, precision), (of_loss, of_gradient) in worst.items()
        if of_loss.error is not None or of_gradient.error is not None
    )
    return tuple(sorted(rows, key=lambda row: (order.get(row.environment, len(order)), row.implementation)))


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


def _errors(results: Results) -> Iterator[tuple[tuple[str, str, str], str, float, float, bool]]:
    """Give (environment, implementation, precision), case, loss error, gradient error, failed for each record."""
    names = ("environment", "implementation", "precision", "workload", "case", "loss_error", "gradient_error")
    for frame, failed in ((results.rounds, False), (results.failures, True)):
        for row in zip(*(frame[name].tolist() for name in names), strict=True):
            environment, implementation, precision, workload, case, loss, gradient = row
            yield (environment, implementation, precision), f"{workload}/{case}", loss, gradient, failed
