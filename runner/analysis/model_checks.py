"""How user networks were verified: which cells, and which pairs of cells, are not known to compute the same.

A record of a user's network says by what the harness verified it, in the fact ``model_check``: ``by`` (``weights``,
``state``, ``drawn``, ``outputs`` or ``shapes``), ``base``, the environment that made the reference, ``fp64``, whether
results in float64 were compared, too, ``reason``, why by outputs or by shapes alone, or how else results were compared
than within the tolerance, ``differs``, whether results were compared and disagree, ``types``, which outputs that agree
have numbers of another type, ``partly``, what of the state one side alone has and what of the outputs was not compared,
``no_update``, why no update of the first steps was seen, and ``later``, how the steps after the timing differ from
them.
"""

from collections.abc import Mapping

from runner.analysis.model import QualityIssue
from runner.core.model import Cell

UNCHECKED = "unchecked"
"""The code of the quality issue of a cell or a pair whose results agree with nothing."""
OTHER_TYPES = "other-types"
"""The code of the quality issue of a cell whose outputs agree, and have numbers of another type."""
NO_UPDATE = "no-update"
"""The code of the quality issue of a cell whose first training steps change nothing."""
STEPS_CHANGE = "steps-change"
"""The code of the quality issue of a cell whose training steps after the timing differ from its first ones."""
PARTLY = "partly-compared"
"""The code of the quality issue of a cell whose results agree, and that has something that was not compared."""
SOURCES = {
    "weights": "weights of the file, results",
    "state": "state and results",
    "drawn": "weights drawn by name, results",
    "outputs": "outputs, without a state,",
}
"""By what a cell was verified -> what it has of the base, in a table."""


def why_unchecked(check: object) -> str:
    """Return why a cell is not known to compute what its base computes, as a sentence; empty if it is, or no network.

    Args:
        check: the fact ``model_check`` of a record; None in those of other workloads.
    """
    if not isinstance(check, Mapping) or check.get("by") != "shapes":
        return ""
    reason = f": {check['reason']}" if check.get("reason") else ""
    return f"nothing but shapes and finiteness is known to agree with {check.get('base')}{reason}"


def other_types(check: object) -> str:
    """Return which outputs of a cell have numbers of another type than its base's, as a sentence; empty if none has.

    Args:
        check: the fact ``model_check`` of a record; None in those of other workloads.
    """
    return str(check.get("types", "")) if isinstance(check, Mapping) else ""


def no_update(check: object) -> str:
    """Return why no update was seen in the first training steps of a cell, as a sentence; empty if one was.

    Args:
        check: the fact ``model_check`` of a record; None in those of other workloads.
    """
    return str(check.get("no_update", "")) if isinstance(check, Mapping) else ""


def later_steps(check: object) -> str:
    """Return how the training steps after the timing differ from the first ones, as a sentence; empty if they agree.

    Args:
        check: the fact ``model_check`` of a record; None in those of other workloads.
    """
    return str(check.get("later", "")) if isinstance(check, Mapping) else ""


def partly(check: object) -> str:
    """Return what of a cell was not compared although its results agree, as a sentence; empty if everything was.

    Args:
        check: the fact ``model_check`` of a record; None in those of other workloads.
    """
    return "" if why_unchecked(check) or not isinstance(check, Mapping) else str(check.get("partly", ""))


def pair_issues(base: object, other: object, cell: Cell) -> tuple[QualityIssue, ...]:
    """Return the quality issue of two cells that were verified, but not against each other; none if they agree.

    Both agree with a reference. They agree with each other if it is the same one: that of a base environment of the
    same framework, or, with weights from the model file, that of one base for all frameworks.

    Args:
        base: the fact ``model_check`` of a cell; None in those of other workloads.
        other: that of ``cell``.
        cell: the cell of the other side.
    """
    if not isinstance(base, Mapping) or not isinstance(other, Mapping) or why_unchecked(base) or why_unchecked(other):
        return ()
    if base.get("base") == other.get("base"):
        return ()
    names = f"{base.get('base')} and {other.get('base')}"
    sentence = f"verified against {names}, and not against each other: that takes weights from the model file"
    return (QualityIssue(code=UNCHECKED, sentence=sentence, serious=True, environment=cell.environment, cell=cell.id),)


def in_words(check: Mapping[str, object], environment: str = "", implementation: str = "") -> str:
    """Return by what a cell was verified, for a table.

    Args:
        check: the fact ``model_check`` of its record.
        environment: that of the cell; the base is compared with what it computed itself, in another process.
        implementation: that of the cell. Where a network has variants, ``base`` is ``environment/implementation``.

    >>> in_words({"by": "state", "base": "torch-1.12", "fp64": True})
    'state and results of torch-1.12, in float64 too'
    >>> in_words({"by": "state", "base": "torch-1.12", "fp64": True}, "torch-1.12")
    'the base of the others: computes its own results again, in float64 too'
    >>> in_words({"by": "state", "base": "torch-1.12/by-hand", "fp64": False}, "torch-1.12", "by-hand")
    'the base of the others: computes its own results again'
    """
    if check.get("by") == "shapes":
        return f"{UNCHECKED}: shapes of {check.get('base')} alone"
    in_float64 = ", in float64 too" if check.get("fp64") else ""
    if check.get("base") in {environment, f"{environment}/{implementation}"}:
        return f"the base of the others: computes its own results again{in_float64}"
    source = SOURCES.get(str(check.get("by")), SOURCES["state"])
    return f"{source} of {check.get('base')}{in_float64}"
