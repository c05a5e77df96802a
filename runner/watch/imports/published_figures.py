"""The published figures of the program as runs: ``runner import published:braun2018``.

A figure becomes ``imported/ENVIRONMENT+IMPLEMENTATION/WORKLOAD/CASE/PHASE/PRECISION``; its device is that of the
publication, its host the name of the publication, its date the first of January of the year. A spread that was
published is a standard deviation, so there is no interval.
"""

from datetime import UTC, datetime

from runner.catalog.published import PREFIX, SOURCES, figures_by_side, select_sides
from runner.core.model import Cell
from runner.history.entries import CellEntry
from runner.watch.imports.figures import Origin, Read, cell_of, run_of


def read_published(name: str) -> Read:
    """Return the figures that ``published:SOURCE/ENVIRONMENT`` matches, a run for each source and device.

    Raises:
        UsageError: there is no such source.
    """
    groups: dict[tuple[str, str], list[CellEntry]] = {}
    for side in select_sides(name):
        for figure in figures_by_side()[side]:
            cell = Cell.parse(
                f"{figure.environment}/{figure.implementation}/{figure.case}/{figure.phase}/{figure.precision}"
            )
            entry = CellEntry(cell=cell_of(cell), release=figure.release, seconds=figure.seconds, rounds=1)
            groups.setdefault((figure.source, figure.device), []).append(entry)
    return Read(
        tuple(
            run_of(
                cells,
                Origin(
                    at=datetime(SOURCES[source].year, 1, 1, tzinfo=UTC),
                    tool="published",
                    device_name=device,
                    host=source,
                    source=f"{PREFIX}{source}",
                    identity=f"{source} {device}",
                ),
            )
            for (source, device), cells in groups.items()
        )
    )
