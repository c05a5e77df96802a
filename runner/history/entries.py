"""What the history holds, as values: runs with their cells and changes, accepted levels, and points of a series."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Annotated, Literal, NamedTuple

from pydantic import ConfigDict

from runner.core.bounds import OF_METRIC, Amount, Count, Instant, MetricName, Name, Ratio, RoundNumber, Text
from runner.core.metrics import TIME
from runner.core.row_ids import row_id

CHECKED = ConfigDict(strict=True, revalidate_instances="always")
"""Entries are checked as they enter the history, and as they are read back: see ``rows``."""
MAX_ROUNDS = 2**31 - 1
"""The largest integer of PostgreSQL."""
Kind = Literal["run", "night", "confirmation", "import"]
"""Where a run comes from: ``runner run``; the first run of ``runner nightly``; a run in turns that confirms the changes
of a night; or a file of another program or machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardEntry:
    """The board that measured a cell, in a run that several boards share.

    Attributes:
        device: ``cpu``, or the UUID of the GPU.
        device_name: the processor or the GPU; the kind of the device.
        host: the name of the machine; ``driver`` the GPU's. Empty if unknown.
    """

    __pydantic_config__ = CHECKED

    device: Text
    device_name: Text
    host: Text = ""
    driver: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEntry:
    """What a run measured of a cell.

    Attributes:
        cell: its id, as ``Cell.id``.
        metric: the name of what was measured, one of ``core.metrics.METRICS``.
        release: the exact version of the framework that ran, such as ``2.9.1``.
        digest: what pins the content of the environment; empty if it was not recorded.
        seconds: median over the rounds of the time of a step, or of the values of another metric in its unit;
            ``seconds_low`` and ``seconds_high`` are the ends of its 95 % interval, None without one.
        rounds: how many rounds have a good record.
        base: the id of the cell that it took turns with. Without such a cell, ``base``, ``base_release`` and
            ``base_digest`` are empty.
        ratio: seconds over those of the base, in turns in the same run, with the ends of its 95 % interval; None
            without a base, or where the two are not comparable.
        verdict: of that ratio, one of ``analysis.comparison_model.VERDICTS``; empty without a base.
        board: the board that measured it; None if the run has only one, which is then the run's device.
    """

    __pydantic_config__ = CHECKED

    cell: Name
    metric: MetricName = TIME
    release: Text
    digest: Text = ""
    seconds: Annotated[Amount, OF_METRIC]
    seconds_low: Annotated[Amount | None, OF_METRIC] = None
    seconds_high: Annotated[Amount | None, OF_METRIC] = None
    rounds: RoundNumber
    base: Text = ""
    base_release: Text = ""
    base_digest: Text = ""
    ratio: Ratio | None = None
    ratio_low: Ratio | None = None
    ratio_high: Ratio | None = None
    verdict: Text = ""
    board: BoardEntry | None = None

    @property
    def series(self) -> str:
        """The id of its series: of its cell and its metric."""
        return row_id(self.cell, self.metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEntry:
    """A change of a night.

    Attributes:
        cell: the id of the cell.
        metric: the name of what changed.
        before: the run that it was compared with.
        against: ``baseline``, ``anchor`` or ``series``: why it was compared with that run.
        state: how it ended, see ``nights.night.State``.
        verdict: in turns; empty if it was not measured in turns.
        ratio: tonight over before, in turns where that was measured, else between the two runs; with the ends of its
            95 % interval.
        rounds: rounds of that ratio.
        confirmed_in: the night that confirmed a regression that still stands; else empty.
        digest: what pinned the content of tonight's environment; empty if unknown.
    """

    __pydantic_config__ = CHECKED

    cell: Name
    before: Text
    against: Text = "baseline"
    state: Text = ""
    verdict: Text = ""
    ratio: Ratio | None = None
    ratio_low: Ratio | None = None
    ratio_high: Ratio | None = None
    rounds: RoundNumber = 0
    confirmed_in: Text = ""
    digest: Text = ""
    metric: MetricName = TIME

    @property
    def series(self) -> str:
        """The id of its series: of its cell and its metric."""
        return row_id(self.cell, self.metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """A run.

    Attributes:
        run: its id, unique in a history.
        at: when it started, ISO 8601 with an offset; the history keeps it in UTC.
        kind: where it comes from.
        device: ``cpu``, or the UUIDs of its GPUs with commas between them.
        device_name: the processor or the GPU; ``2 x H200`` for two, ``H100 and RTX 4090`` for two kinds.
        backend: ``docker``, ``venv`` or ``host``; or the program that an import comes from.
        host: the name of the machine; ``driver`` the GPU's, ``harness`` the version of the measuring code. Empty if
            unknown.
        source: the folder or the file that it came from.
        cells: what it measured; a cell once.
        metrics: the same of metrics other than time; a cell once for each metric.
        changes: of a night.
    """

    __pydantic_config__ = CHECKED

    run: Name
    at: Instant
    kind: Kind
    device: Text
    device_name: Text
    backend: Text
    host: Text = ""
    driver: Text = ""
    harness: Text = ""
    source: Text = ""
    cells: tuple[CellEntry, ...]
    metrics: tuple[CellEntry, ...] = ()
    changes: tuple[ChangeEntry, ...] = ()

    @property
    def series_device(self) -> str:
        """The device as series and levels name it, see ``series_device``."""
        return series_device(self.backend, self.device_name)

    @property
    def digest(self) -> str:
        """SHA-256 of the content, as hexadecimal digits: the same entry has the same digest, wherever it is made."""
        content = {name: value for name, value in asdict(self).items() if name != "source"}
        for part in (*content["cells"], *content["metrics"], *content["changes"]):
            if part.get("metric") == TIME:  # as entries of times always were
                del part["metric"]
            if part.get("board", ...) is None:  # as entries of one board always were
                del part["board"]
        if not content["metrics"]:
            del content["metrics"]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def extent(self) -> tuple[int, int]:
        """How much there is of the run: the rounds of all its cells, and the number of its changes.

        More rounds than the column of PostgreSQL holds are all one.
        """
        return min(sum(cell.rounds for cell in self.cells), MAX_ROUNDS), len(self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What a person accepted at once: from this run on, the times of the cells count as good.

    Attributes:
        device: as ``series_device`` names it.
        run: the run that measured these times, a level of each series.
        cells: the ids of the cells; a single one where it is the level of a series.
        at: when, ISO 8601 with an offset.
        reason: why, in the person's words.
        person: the login name.
    """

    __pydantic_config__ = CHECKED

    device: Text
    run: Name
    cells: tuple[Name, ...]
    at: Instant
    reason: Text
    person: Text


class SeriesPoint(NamedTuple):
    """A cell in one run, as a point of its series; the fields are those of ``CellEntry`` and ``RunEntry``.

    ``device`` is the device as ``series_device`` names it, and ``device_uuid`` is ``cpu`` or the UUID of the GPU. Both,
    and host and driver, are those of the board of the cell, or else of the run.
    """

    run: Name
    at: Instant
    kind: Kind
    device: Text
    host: Text
    harness: Text
    driver: Text
    release: Text
    digest: Text
    seconds: Amount
    seconds_low: Amount | None
    seconds_high: Amount | None
    rounds: RoundNumber
    base: Text
    base_release: Text
    base_digest: Text
    ratio: Ratio | None
    ratio_low: Ratio | None
    ratio_high: Ratio | None
    verdict: Text
    device_uuid: Text = ""


class RunRow(NamedTuple):
    """A run of the history without its cells; ``cells`` and ``changes`` are their numbers.

    The changes of a night are all that it looked at: confirmed regressions, improvements, and what turned out to be
    none. ``History.changes`` has them.
    """

    run: Name
    at: Instant
    kind: Kind
    device: Text
    device_name: Text
    backend: Text
    host: Text
    driver: Text
    harness: Text
    source: Text
    cells: Count
    changes: Count

    @property
    def is_night(self) -> bool:
        """Whether it is a night of this machine, or an imported one; one of those counts only if it has changes."""
        return self.kind == "night" or self.changes > 0


def series_device(backend: str, device_name: str) -> str:
    """Return the device of a series: the backend and the kind of device, for several GPUs share the cases of a run.

    >>> series_device("docker", "3 x H200")
    'docker H200'
    """
    return f"{backend} {device_name.rpartition(' x ')[2]}"
