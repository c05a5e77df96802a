"""How close each implementation came to the float64 reference, at its worst."""

from dataclasses import dataclass
from typing import NamedTuple

from runner.analysis.model import Dataset
from runner.report import formatting

ERRORS = (
    "The largest relative error of a loss, and of a gradient and of a result as a share of its norm, against a float64 "
    "reference"
)
HEAD = ("environment", "implementation", "precision", "loss", "gradient", "result", "in")


class Worst(NamedTuple):
    """The largest error of a kind; None where none was recorded.

    ``case`` is where it was, and ``failed`` says whether a cell that failed the check had it.
    """

    error: float | None = None
    case: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """The largest errors of an implementation in an environment, over all cells and rounds, failed ones too.

    Attributes:
        loss: |loss - reference| / |reference|, the largest over the checked steps.
        gradient: norm of the difference over the norm of the reference, the largest over the parameters.
        result: the same of what a forward pass or an operation gives.
    """

    environment: str
    implementation: str
    precision: str
    loss: Worst
    gradient: Worst
    result: Worst

    @property
    def worst(self) -> tuple[Worst, Worst, Worst]:
        """Loss, gradient and result."""
        return self.loss, self.gradient, self.result

    @property
    def cases(self) -> tuple[str, ...]:
        """Where they were, each case once."""
        return tuple(dict.fromkeys(worst.case for worst in self.worst if worst.case))

    @property
    def failed(self) -> bool:
        """Whether one of them is from a cell that failed the check."""
        return any(worst.failed for worst in self.worst)


Key = tuple[str, str, str]
"""Environment, implementation, precision."""


def accuracy(results: Dataset) -> tuple[Accuracy, ...]:
    """Return a row for each environment, implementation and precision of a run that recorded an error.

    Environments stand in the plan's order, their implementations by name.
    """
    found = [_worst(results, f"{name}_error") for name in ("loss", "gradient", "forward")]
    order = {name: place for place, name in enumerate(dict.fromkeys(one.cell.environment for one in results.plan))}
    rows = []
    for key in dict.fromkeys(key for worst in found for key in worst):
        loss, gradient, result = (worst.get(key, Worst()) for worst in found)
        environment, implementation, precision = key
        rows.append(
            Accuracy(
                environment=environment,
                implementation=implementation,
                precision=precision,
                loss=loss,
                gradient=gradient,
                result=result,
            )
        )
    return tuple(sorted(rows, key=lambda row: (order.get(row.environment, len(order)), row.implementation)))


def _worst(results: Dataset, column: str) -> dict[Key, Worst]:
    """Return the largest error in a column, over good records and failed ones."""
    found: dict[Key, Worst] = {}
    for frame, failed in ((results.rounds, False), (results.failures, True)):
        known = frame[frame[column].notna()]
        places = known.groupby(["environment", "implementation", "precision"], observed=True)[column].idxmax()
        for row in known.loc[places].itertuples():
            key = (str(row.environment), str(row.implementation), str(row.precision))
            worst = Worst(float(getattr(row, column)), f"{row.workload}/{row.case}", failed)
            found[key] = max(found.get(key, worst), worst, key=lambda one: one.error or 0.0)
    return found


def text(rows: tuple[Accuracy, ...]) -> str:
    """Return the rows as lines for a terminal or a file, in columns."""
    lines = [HEAD, *(_line(row) for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(HEAD))]
    padded = ("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded) + "\n"


def _line(row: Accuracy) -> tuple[str, ...]:
    errors = (formatting.error(worst.error) for worst in row.worst)
    return (row.environment, row.implementation, row.precision, *errors, ", ".join(row.cases))
