"""A week of nights in small: what memory, imports and sizes do raises and ends alerts as times do."""

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks.simulated_nights import Engine
from runner.analysis.analyse import analyse_run
from runner.analysis.comparison_model import Comparison
from runner.analysis.dataset import load_dataset
from runner.core.grouping import grouped
from runner.core.metrics import BY_NAME
from runner.core.model import Block, Cell, Measurement, Plan, PlannedCell, Record, Survey
from runner.core.progress import Progress
from runner.core.row_ids import row_id
from runner.nights.looks import earlier_nights
from runner.nights.night import Night
from runner.session.context import Context
from runner.session.execution.recorder import Totals
from runner.session.preparation import Prepared
from runner.store.run import Run
from runner.watch.alerts.sending import Message
from runner.watch.nightly.compared import compared, read_earlier, suspects
from runner.watch.nightly.confirmation import Confirmation
from runner.watch.nightly.requests import NightCandidate
from runner.watch.nightly.text import night_text
from runner.watch.site import write_site
from tests.support.changed_runs import change_header
from tests.support.fake_runs import cell, good, make
from tests.support.html import html_text
from tests.support.needs import slow
from tests.support.nights import SLACK, Receivers, ended

CELLS = (cell(), cell(case="2x640"))
CHANGING = cell().environment
"""The environment that takes the values of a night; any other takes those of ``Values()`` in each."""
DAYS = 7
MARGIN = 0.02
MINUTES_OF_A_DAY = 24 * 60


@dataclass(frozen=True, kw_only=True)
class Values:
    """What the first cell of an environment takes in a night, and what the environment does."""

    seconds: float = 0.01
    peak: float = 2.0**28
    imports: float = 2.0
    size: float = 2e9


def digest_of(day: int) -> str:
    """Return what pins the environment of a night: each has a build of its own."""
    return f"sha256:{hashlib.sha256(str(day).encode()).hexdigest()}"


def records(of: Cell, values: Values, count: int, draw: random.Random) -> list[Record]:
    """Return rounds of a cell, with noise; each has a server of its own."""
    values = values if of.environment.partition("@")[0] == CHANGING else Values()
    planted = values if replace(of, environment=CHANGING) == CELLS[0] else Values()
    return [
        good(
            of,
            number,
            [planted.seconds * draw.gauss(1, 0.004) for _ in range(30)],
            batch=1,
            server=f"{of.environment}#{number}",
            step_peak_bytes=int(planted.peak * draw.gauss(1, 0.002)),
            first_call_seconds=0.1 * draw.gauss(1, 0.02),
            import_cpu_seconds=values.imports * draw.gauss(1, 0.01),
            installed_bytes=int(values.size),
        )
        for number in range(count)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnConfirmation(Confirmation):
    """A confirmation whose runs in turns are drawn: nine rounds of each cell, before and now."""

    folder: Path
    before: Mapping[str, Values]
    now: Values
    draw: random.Random
    measured: list[tuple[str, ...]] = field(default_factory=list)

    def _compared(self, prepared: Prepared, environment: str, metrics: tuple[str, ...]) -> tuple[Path, Comparison]:
        (base,) = prepared.also
        self.measured.append(metrics)
        cells = [each.cell for each in prepared.plan.cells if each.cell.environment == environment]
        then = self.before[base.partition("@")[2]]
        drawn = [record for of in cells for record in records(replace(of, environment=base), then, 9, self.draw)]
        drawn += [record for of in cells for record in records(of, self.now, 9, self.draw)]
        (comparison,) = analyse_run(make(self.folder, drawn), MARGIN).comparisons
        return self.folder, comparison


def plan(cells: Sequence[Cell]) -> Plan:
    """Return the plan of the first run of a night."""
    cases = grouped((of.case_id, of) for of in cells)
    blocks = tuple(Block(case_id=name, spec={}, device="cpu", cells=tuple(each)) for name, each in cases.items())
    planned = tuple(PlannedCell(cell=of, device="cpu", seconds=6.0) for of in cells)
    measurement = Measurement(rounds=3, max_rounds=3)
    frameworks = {of.environment: "torch" for of in cells}
    return Plan(
        device="cpu", backend="venv", measurement=measurement, cells=planned, blocks=blocks, frameworks=frameworks
    )


@dataclass
class Week:
    """Nights of environments that have another build in each, and the receivers of their alerts."""

    reports: Path
    draw: random.Random
    environments: tuple[str, ...] = (CHANGING,)
    receivers: Receivers = field(default_factory=Receivers)
    values: dict[str, Values] = field(default_factory=dict)
    nights: list[Night] = field(default_factory=list)
    metrics: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def cells(self) -> list[Cell]:
        """The cells of all environments."""
        return [replace(of, environment=name) for name in self.environments for of in CELLS]

    def night(self, values: Values) -> list[Message]:
        """Measure a night, compare, confirm and alert; return its messages."""
        day = len(self.nights)
        run = make(
            self.reports,
            [record for of in self.cells for record in records(of, values, 3, self.draw)],
            later=day * MINUTES_OF_A_DAY,
        )
        header = {"device": "cpu", "device_name": "EPYC", "backend": "venv", "at": f"2026-12-{day + 1:02}T02:30:00Z"}
        digests = {name: digest_of(day) for name in self.environments}
        change_header(run, **header, digests=digests)
        run.note("ended", how="done")
        self.values[run.id] = values
        night, candidates, rows = self._judged(run, header)
        changes = self._confirmed(run, values, candidates)
        night = replace(night, changes=(*night.changes, *changes), state="done", stage="alert")
        self.nights.append(ended(self.reports, night, self.receivers, [SLACK], compared=rows, digests=digests))
        messages = [message for _, message in self.receivers.messages]
        self.receivers.messages.clear()
        return messages

    def _judged(self, run: Run, header: Mapping[str, str]) -> tuple[Night, Sequence[NightCandidate], frozenset[str]]:
        results, nights = load_dataset(run), earlier_nights(self.reports)
        earlier = read_earlier(self.reports, Totals(run=run, good=1, bad=()), results, nights, {})
        digests = run.journal().header["digests"]
        candidates, rows = suspects(results, digests, earlier, lambda _: {}, MARGIN)
        fields = {name: value for name, value in header.items() if name != "at"}
        seconds = {of.id: 0.01 for of in self.cells}
        night = Night(
            run=run.id, at=header["at"], changes=(), measured=len(seconds), seconds=seconds, **cast(Any, fields)
        )
        return compared(night, self.cells, earlier, (), MARGIN), candidates, rows

    def _confirmed(self, run: Run, values: Values, candidates: Sequence[NightCandidate]) -> list[Any]:
        settings = SimpleNamespace(controls=False, margin=MARGIN, reports=self.reports)
        confirmation = DrawnConfirmation(
            first=Prepared(plan=plan(self.cells), specs=(), survey=Survey()),
            run=run.id,
            pace=1.0,
            context=cast(Context, SimpleNamespace(backend=Engine(), settings=settings, gpus=())),
            progress=cast(Progress, SimpleNamespace(note=lambda _: None)),
            folder=self.reports / "turns",
            before=self.values,
            now=values,
            draw=self.draw,
            measured=self.metrics,
        )
        return [change for changes, _ in confirmation.confirm(candidates, float("inf")) for change in changes]


PLANTED = {
    "memory": (Values(peak=1.05 * 2.0**28), "5.0 % more memory: nn-lstm/", r"25\d MiB → 26\d MiB"),
    "import": (Values(imports=2.4), "slower to import: import of the framework", r"(2.0\d|1.9\d) s → 2.[34]\d s"),
    "size": (Values(size=2.4e9), "1.20x more on disk: installed size", "2.00 GB → 2.40 GB"),
    "time": (Values(seconds=0.011), "% slower: nn-lstm/", "alternating, 9 rounds"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_week_with_a_regression_planted_in_one_night_has_one_alert_and_its_end(name: str, tmp_path: Path) -> None:
    worse, title, values = PLANTED[name]
    week = Week(tmp_path, random.Random(f"a week with {name}"))
    messages = [week.night(worse if 2 <= day < 5 else Values()) for day in range(DAYS)]
    assert [len(of_night) for of_night in messages] == [0, 0, 1, 0, 0, 1, 0], messages
    (opened,), (closed,) = messages[2], messages[5]
    assert title in opened.title
    assert re.search(values, opened.body)
    assert "no longer " in closed.title
    if name != "time":
        assert f"worse in {BY_NAME[name].title}" in closed.title
        assert f"--metric {name}" in opened.body
        assert {name} <= {metric for metrics in week.metrics for metric in metrics}
    (row,) = week.nights[2].alerts[0].cells
    subject = f"torch-2.x/all/environment/{name}/all/all" if BY_NAME[name].scope == "environment" else CELLS[0].id
    assert row == row_id(subject, name)
    assert [bool(night.slower) for night in week.nights] == [False, False, True, True, True, False, False]
    assert [change.metric for change in week.nights[4].slower] == [name]
    assert f"{BY_NAME[name].worse}: " in night_text(week.nights[2])


def test_memory_that_grows_on_the_fourth_night_is_one_alert_which_later_nights_do_not_repeat(tmp_path: Path) -> None:
    week = Week(tmp_path, random.Random("from the fourth night on"), environments=("torch-1.12", CHANGING))
    messages = [week.night(Values(peak=1.1 * 2.0**28) if day >= 3 else Values()) for day in range(DAYS)]
    assert [len(of_night) for of_night in messages] == [0, 0, 0, 1, 0, 0, 0], messages
    (opened,) = messages[3]
    assert re.match(r"torch-2\.x (10|9\.\d) % more memory: nn-lstm/", opened.title)
    assert "slower" not in opened.title + opened.body
    assert "torch-1.12" not in opened.title + opened.body
    assert [(entry.action, *entry.cells) for night in week.nights for entry in night.alerts] == [
        ("opened", row_id(CELLS[0].id, "memory"))
    ]
    worse = [{(change.environment, change.metric) for change in night.slower} for night in week.nights]
    assert worse == [set()] * 3 + [{(CHANGING, "memory")}] * 4
    summary = night_text(week.nights[3]).splitlines()[-1]
    assert re.search(r"1 regression confirmed: (10|9\.\d) % more memory, 25\d MiB → 28\d MiB", summary)
    index = write_site(tmp_path, tmp_path / "site", MARGIN, lambda _: None)
    listed = html_text(index.read_text()).partition("What changed this week")[2].partition("Trends by device")[0]
    assert listed.count("peak memory of the steps") == 1
    assert re.search(r"(10|9\.\d) % more memory.*25\d MiB → 28\d MiB", listed, re.DOTALL)


@pytest.mark.parametrize("seed", [0, *slow(1, 2, 3)])
def test_a_week_of_two_equal_releases_has_no_alert_and_nothing_in_its_summary(seed: int, tmp_path: Path) -> None:
    week = Week(tmp_path, random.Random(f"equal {seed}"), environments=("torch-1.12", CHANGING))
    assert [week.night(Values()) for _ in range(DAYS)] == [[]] * DAYS
    assert all("no regression confirmed" in night_text(night).splitlines()[-1] for night in week.nights)


@pytest.mark.parametrize("seed", [0, *slow(1, 2, 3)])
def test_a_week_in_which_only_noise_differs_has_no_alert(seed: int, tmp_path: Path) -> None:
    week = Week(tmp_path, random.Random(seed))
    assert [week.night(Values()) for _ in range(DAYS)] == [[]] * DAYS


def test_the_metrics_of_a_cell_share_the_rounds_of_a_turn(tmp_path: Path) -> None:
    week = Week(tmp_path, random.Random("rounds"))
    week.night(Values())
    week.night(Values(peak=2.0**29, seconds=0.02))
    changes = {change.metric: change for change in week.nights[1].changes if change.cell == CELLS[0].id}
    assert {"time", "memory"} <= {name for name, change in changes.items() if change.confirmed_in}
    assert len(week.metrics) == 1  # one run in turns for all of them
    (alert,) = week.nights[1].alerts
    assert set(alert.cells) >= {CELLS[0].id, row_id(CELLS[0].id, "memory")}
