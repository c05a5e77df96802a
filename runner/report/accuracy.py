"""The largest errors of each implementation against the float64 reference."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from runner.analysis import model_checks
from runner.analysis.model import Dataset
from runner.catalog.cases import CASES, is_kernel
from runner.harness.verify.tolerance import OPERATIONS, TOLERANCES, allowed
from runner.report import formatting, rich_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

WIDTH = 200
"""Columns in which the table fits."""
CASES_WIDTH = 26
"""Columns that the table leaves for the cases at least."""
ERRORS = (
    "The largest relative error of a loss, and of a gradient and of a result as a share of its norm, against a float64 "
    "reference"
)
NETWORKS = "; of a network of yours, against the environment that the last column names"
HEAD = ("", "environment", "implementation", "precision", "loss", "gradient", "result", "in")
ALLOWED = "errors are as error/allowed"


class Worst(NamedTuple):
    """The largest error of a kind.

    Attributes:
        error: None if none was recorded.
        case: the case that had it.
        failed: whether a cell that failed the check had it.
        allowed: the tolerance of the check; None if the precision has none.
    """

    error: float | None = None
    case: str = ""
    failed: bool = False
    allowed: float | None = None

    def __str__(self) -> str:
        """Return the error and the tolerance, ``3.1e-07/1e-03``, or a dash."""
        allowed = "" if self.allowed is None else f"/{self.allowed:.0e}"
        return formatting.DASH if self.error is None else f"{formatting.error(self.error)}{allowed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """The largest errors of an implementation in an environment, over all cells and rounds, including failed ones.

    Attributes:
        loss: |loss - reference| / |reference|, the largest over the checked steps.
        gradient: norm of the difference over the norm of the reference, the largest over the parameters.
        result: the same for the output of a forward pass or an operation.
        checks: by what user networks were verified, in words; empty for other implementations.
    """

    environment: str
    implementation: str
    precision: str
    loss: Worst
    gradient: Worst
    result: Worst
    checks: tuple[str, ...] = ()

    @property
    def unchecked(self) -> bool:
        """Whether the results of a user's network were compared with nothing."""
        return any(check.startswith(model_checks.UNCHECKED) for check in self.checks)

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
    """Return a row for each environment, implementation and precision of a run that recorded an error or a check.

    Environments are in the order of the plan, their implementations by name.
    """
    worst_of_kind = [_worst(dataset, name) for name in ("loss", "gradient", "forward")]
    order, checks = formatting.environment_order(dataset), _checks(dataset)
    rows = []
    for key in dict.fromkeys(itertools.chain(*worst_of_kind, checks)):
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
                checks=tuple(
                    model_checks.in_words(check, environment, implementation) for check in checks.get(key, ())
                ),
            )
        )
    return tuple(sorted(rows, key=lambda row: (order.get(row.environment, len(order)), row.implementation)))


def _allowed(kind: str, precision: str, case_id: str) -> float | None:
    """Return the tolerance of the harness's check, ``runner/harness/verify/tolerance.py``."""
    if kind == "forward" and case_id in CASES and is_kernel(CASES[case_id]):
        return OPERATIONS.get(precision)
    return allowed(kind, precision, CASES.get(case_id, {}).get("cell")) if precision in TOLERANCES else None


def _checks(dataset: Dataset) -> dict[Key, list[Mapping[str, Any]]]:
    """Return how user networks were verified, each way once, whether or not they failed."""
    checks: dict[Key, list[Mapping[str, Any]]] = {}
    for frame in (dataset.rounds, dataset.failures):
        keys = zip(*(frame[name].tolist() for name in ("environment", "implementation", "precision")), strict=True)
        for key, check in zip(keys, frame["model_check"].tolist(), strict=True):
            if isinstance(check, Mapping):
                of_key = checks.setdefault(key, [])
                of_key += [check] if check not in of_key else []
    return checks


def _worst(dataset: Dataset, kind: str) -> dict[Key, Worst]:
    """Return the largest error of a kind, over good records and failed ones."""
    largest: dict[Key, Worst] = {}
    column = f"{kind}_error"
    for frame, failed in ((dataset.rounds, False), (dataset.failures, True)):
        known = frame[frame[column].notna()]
        indexes = known.groupby(["environment", "implementation", "precision"], observed=True)[column].idxmax()
        for row in known.loc[indexes].itertuples():
            key = (str(row.environment), str(row.implementation), str(row.precision))
            case_id = f"{row.workload}/{row.case}"
            limit = _allowed(kind, key[2], case_id)
            if isinstance(row.model_check, Mapping):
                limit = row.model_check.get("tolerance", {}).get(kind)
            worst = Worst(float(getattr(row, column)), case_id, failed, limit)
            largest[key] = max(largest.get(key, worst), worst, key=lambda each: each.error or 0.0)
    return largest


def text(rows: tuple[Accuracy, ...], width: int = WIDTH, *, colour: bool = False) -> str:
    """Return the rows, those that failed the check first: as a table if it fits, else as a few lines for each row.

    Args:
        rows: of a run.
        width: columns to use, at least 60.
        colour: whether the lines have ANSI colours.
    """
    from rich.padding import Padding
    from rich.text import Text

    fields = [_fields(row) for row in sorted(rows, key=lambda row: not row.failed)]
    *columns, cases = zip(HEAD, *fields, strict=True)
    first = _aligned(list(zip(*columns, strict=True)))
    parts: list[RenderableType] = []
    if max(map(len, first)) + CASES_WIDTH <= width:
        lines = [Text(first[0], style="bold"), *map(_coloured, first[1:])]
        parts.append(rich_text.aligned(zip(lines, cases, strict=True), 2))
    else:
        names = _aligned([each[:4] for each in fields])
        for line, (*_, loss, gradient, result, of_row) in zip(names, fields, strict=True):
            errors = f"loss {loss}, gradient {gradient}, result {result}, in {of_row}"
            parts += [_coloured(line), Padding(Text(errors), (0, 0, 0, 8))]
    failed, unchecked = (sum(getattr(row, name) for row in rows) for name in ("failed", "unchecked"))
    count = formatting.counted(len(rows), "implementation")
    summary = f"{failed} of {count} failed the check" if failed else "all are ok" if not unchecked else "none failed"
    summary += f", {unchecked} of {count} unchecked" * bool(unchecked)
    style = "FAILED" if failed else "" if unchecked else "ok"
    parts.append(Text(f"{summary}; {ALLOWED}", style=formatting.STATE_STYLES.get(style, "")))
    return rich_text.as_text(parts, width, colour=colour) + "\n"


def _fields(row: Accuracy) -> tuple[str, ...]:
    result = "FAILED" if row.failed else "unchecked" if row.unchecked else "ok"
    cases = "; ".join(filter(None, (", ".join(row.cases), *row.checks)))
    return (result, row.environment, row.implementation, row.precision, *map(str, row.worst), cases)


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of fields in columns."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ("  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) for line in lines)
    return [line.rstrip() for line in padded]


def _coloured(line: str) -> "Text":
    """Return a line whose first word is a result, which has its colour; a failure colours the line."""
    from rich.text import Text

    result = line.partition(" ")[0]
    text = Text(line)
    text.stylize(formatting.STATE_STYLES.get(result, ""), 0, None if result == "FAILED" else len(result))
    return text
