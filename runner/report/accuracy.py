"""The largest errors of each implementation against the float64 reference."""

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
    """The largest error of a kind.

    Attributes:
        error: None if none was recorded.
        case: the case that had it.
        failed: whether a cell that failed the check had it.
    """

    error: float | None = None
    case: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """The largest errors of an implementation in an environment, over all cells and rounds, including failed ones.

    Attributes:
        loss: |loss - reference| / |reference|, the largest over the checked steps.
        gradient: norm of the difference over the norm of the reference, the largest over the parameters.
        result: the same for the output of a forward pass or an operation.
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
        """The cases with the largest errors, each once."""
        return tuple(dict.fromkeys(worst.case for worst in self.worst if worst.case))

    @property
    def failed(self) -> bool:
        """Whether a cell that failed the check had one of them."""
        return any(worst.failed for worst in self.worst)


Key = tuple[str, str, str]
"""Environment, implementation, precision."""


def accuracy(dataset: Dataset) -> tuple[Accuracy, ...]:
    """Return a row for each environment, implementation and precision of a run that recorded an error.

    Environments are in the order of the plan, their implementations by name.
    """
    worst_of_kind = [_worst(dataset, f"{name}_error") for name in ("loss", "gradient", "forward")]
    order = formatting.environment_order(dataset)
    rows = []
    for key in dict.fromkeys(key for worst in worst_of_kind for key in worst):
        loss, gradient, result = (worst.get(key, Worst()) for worst in worst_of_kind)
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


def _worst(dataset: Dataset, column: str) -> dict[Key, Worst]:
    """Return the largest error in a column, over good records and failed ones."""
    largest: dict[Key, Worst] = {}
    for frame, failed in ((dataset.rounds, False), (dataset.failures, True)):
        known = frame[frame[column].notna()]
        indexes = known.groupby(["environment", "implementation", "precision"], observed=True)[column].idxmax()
        for row in known.loc[indexes].itertuples():
            key = (str(row.environment), str(row.implementation), str(row.precision))
            worst = Worst(float(getattr(row, column)), f"{row.workload}/{row.case}", failed)
            largest[key] = max(largest.get(key, worst), worst, key=lambda each: each.error or 0.0)
    return largest


def text(rows: tuple[Accuracy, ...]) -> str:
    """Return the rows as aligned columns."""
    lines = [HEAD, *(_line(row) for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(HEAD))]
    padded = ("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded) + "\n"


def _line(row: Accuracy) -> tuple[str, ...]:
    errors = (formatting.error(worst.error) for worst in row.worst)
    return (row.environment, row.implementation, row.precision, *errors, ", ".join(row.cases))
