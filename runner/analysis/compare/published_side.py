"""A published environment as a side of a comparison: times without rounds, measured on something else."""

from dataclasses import replace

from runner.analysis.compare.pairing import MeasuredCell, Side
from runner.catalog.published import SOURCES, Figure, figures_by_side, select_sides
from runner.core.facts import COMPARABLE
from runner.core.model import Cell

VENDOR_WORDS = frozenset({"nvidia", "geforce", "tesla", "founders", "edition"})
"""Words of a GPU's name that some drivers and authors leave out."""


def published_side(name: str) -> Side:
    """Return a published environment as a side of a comparison.

    Args:
        name: ``published:SOURCE/ENVIRONMENT``, one of ``runner.catalog.published.figures_by_side()``.

    Raises:
        UsageError: the name is unknown; the error lists the known ones.
    """
    (side,) = select_sides(name)
    figures = {_cell(figure): figure for figure in figures_by_side()[side]}
    return Side(
        environment=name,
        framework=next(iter(figures.values())).framework,
        kinds={cell: figure.kind for cell, figure in figures.items()},
        measured={cell: _measured(figure) for cell, figure in figures.items()},
        figures=figures,
    )


def with_comparable_facts(base: MeasuredCell, other: MeasuredCell) -> tuple[MeasuredCell, MeasuredCell]:
    """Return two cells, at least one of them published, without the device facts that cannot be compared.

    Devices are compared by the model in their names: "GeForce GTX 1080" is "NVIDIA GTX 1080".
    """
    models = {_model(name) for cell in (base, other) for name in cell.facts["device_name"]}
    removed = ("device", "device_name") if len(models) == 1 else ("device",)
    unknown = dict.fromkeys(removed, frozenset[str]())
    return replace(base, facts={**base.facts, **unknown}), replace(other, facts={**other.facts, **unknown})


def note(figure: Figure) -> str:
    """Return the known difference of a figure's program as a sentence; empty if there is none."""
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


def _measured(figure: Figure) -> MeasuredCell:
    """Return a figure as a measured cell; a fact that was not published has no value, so it cannot differ."""
    known = {
        "device": figure.device,
        "device_name": figure.device,
        "protocol": SOURCES[figure.source].protocol,
        "effective_precision": figure.precision,
    }
    facts = {name: frozenset({known[name]} if name in known else ()) for name in COMPARABLE}
    return MeasuredCell({}, figure.seconds, facts)


def _model(name: str) -> str:
    return " ".join(word for word in name.lower().split() if word not in VENDOR_WORDS)
