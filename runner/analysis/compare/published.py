"""A published environment as a side of a comparison: times without rounds, measured on something else."""

from dataclasses import replace

from runner.analysis.compare.pairing import Measured, Side
from runner.analysis.model import COMPARABLE
from runner.catalog.published import SOURCES, Figure, select, sides
from runner.core.model import Cell

MAKERS = frozenset({"nvidia", "geforce", "tesla", "founders", "edition"})
"""Words of a GPU's name that one driver or writer gives and another leaves out."""


def published_side(name: str) -> Side:
    """Return what a publication says of an environment.

    Args:
        name: ``published:SOURCE/ENVIRONMENT``, one of ``runner.catalog.published.sides()``.

    Raises:
        UsageError: there is none of that name; the error says what there is.
    """
    (side,) = select(name)
    found = {_cell(figure): figure for figure in sides()[side]}
    return Side(
        environment=name,
        framework=next(iter(found.values())).framework,
        kinds={cell: figure.kind for cell, figure in found.items()},
        measured={cell: _measured(figure) for cell, figure in found.items()},
        figures=found,
    )


def with_comparable_facts(one: Measured, two: Measured) -> tuple[Measured, Measured]:
    """Return two cells, of which one at least is published, with the facts they can be told apart by.

    Devices are told apart by their names, and these by their models: "GeForce GTX 1080" is "NVIDIA GTX 1080".
    """
    models = {_model(name) for cell in (one, two) for name in cell.facts["device_name"]}
    left = ("device", "device_name") if len(models) == 1 else ("device",)
    first, second = (replace(cell, facts={**cell.facts, **dict.fromkeys(left, frozenset())}) for cell in (one, two))
    return first, second


def note(figure: Figure) -> str:
    """Return what is known to be different in a figure's program, as a sentence; empty where nothing is."""
    return f"{figure.side}: {figure.note}" if figure.note else ""


def _cell(figure: Figure) -> Cell:
    workload, _, case = figure.case.partition("/")
    return Cell(
        environment=figure.side,
        implementation=figure.implementation,
        workload=workload,
        case=case,
        phase=figure.phase,
        precision=figure.precision,
    )


def _measured(figure: Figure) -> Measured:
    """Return a figure as a cell; facts that nobody wrote down have no value, and none of another can differ."""
    known = {
        "device": figure.device,
        "device_name": figure.device,
        "protocol": SOURCES[figure.source].protocol,
        "effective_precision": figure.precision,
    }
    facts = {name: frozenset({known[name]} if name in known else ()) for name in COMPARABLE}
    return Measured({}, figure.seconds, facts)


def _model(name: str) -> str:
    return " ".join(word for word in name.lower().split() if word not in MAKERS)
