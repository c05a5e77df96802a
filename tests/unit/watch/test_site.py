"""The site over the history: what changed this week, a page of each device and cell, and the list of runs."""

import json
import math
import random
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from runner.analysis import dataset
from runner.analysis.analyse import analyse
from runner.analysis.compare.metric_rounds import environment_cell
from runner.core.metrics import BY_NAME
from runner.history.database import History
from runner.history.entries import Acceptance, ChangeEntry, SeriesPoint
from runner.report import report
from runner.report import site as pages
from runner.report.run_summary import RunSummary
from runner.report.site import site
from runner.report.trend_charts import chart, spark
from runner.report.trend_rows import row_of
from runner.report.trends import MAX_POINTS, Trend, changes_together, trends_of
from runner.stats.changes_of_tables import change_points_of
from runner.watch.site import write_site
from tests.support.fake_runs import bad, cell, good, make, realistic
from tests.support.histories import measured, night
from tests.support.html import html_text

CELL = "torch-2.x/nn-lstm/w/c/train/fp32"
FIRST = datetime(2026, 9, 1, 2, 30, tzinfo=UTC)
EVIL = '<script>"&\u202e'


def run_of(night: int) -> str:
    return f"{FIRST + timedelta(days=night):%Y%m%d-%H%M%S}-0000"


def point(night: int, ratio: float | None = 0.8, seconds: float = 0.01, **changes: Any) -> SeriesPoint:
    known: dict[str, Any] = {
        "run": run_of(night),
        "at": f"{FIRST + timedelta(days=night):%Y-%m-%dT%H:%M:%SZ}",
        "kind": "night",
        "device": "venv CPU",
        "host": "here",
        "harness": "9f3c",
        "driver": "",
        "release": "2.9.0",
        "digest": "",
        "seconds": seconds,
        "seconds_low": seconds * 0.99,
        "seconds_high": seconds * 1.01,
        "rounds": 5,
        "base": CELL.replace("2.x", "1.13"),
        "base_release": "1.13.1",
        "base_digest": "sha256:1",
        "ratio": ratio,
        "ratio_low": ratio and ratio * 0.99,
        "ratio_high": ratio and ratio * 1.01,
        "verdict": "faster",
    }
    return SeriesPoint(**{**known, **changes})


def nights(count: int = 30, step: float = 1.08, at: int = 26, **changes: Any) -> list[SeriesPoint]:
    """Return points whose ratio is ``step`` times as large from a night on, with a noise of half a per cent."""
    draw = random.Random(1)
    return [
        point(night, 0.8 * (step if night >= at else 1) * math.exp(draw.gauss(0, 0.005)), **changes)
        for night in range(count)
    ]


def trend(points: list[SeriesPoint], **changes: Any) -> Trend:
    return Trend(cell=CELL, device="venv CPU", host="here", points=tuple(points), **changes)


def level(night: int, reason: str = "a new check") -> Acceptance:
    at = f"{FIRST + timedelta(days=night):%Y-%m-%dT%H:%M:%SZ}"
    return Acceptance(cells=(CELL,), device="venv CPU", run=run_of(night), at=at, reason=reason, person="ann")


def summary(run: str, **changes: object) -> RunSummary:
    fields: dict[str, Any] = {
        "run": run,
        "measured": "2026-11-20 10:45 UTC",
        "title": f"title of {run}",
        "grade": "fair",
        "device": "a processor",
        "tests": 1,
        "words": {"faster": 2, "can't tell": 1},
        "failed": 0,
        **changes,
    }
    return RunSummary(**fields)


def written(*trends: Trend, newest: int = 29) -> dict[str, str]:
    return dict(site(trends, [], FIRST + timedelta(days=newest)))


def test_a_summary_has_the_answer_and_the_grade_and_no_times(tmp_path: Path) -> None:
    results = dataset.load_dataset(realistic(tmp_path))
    document = json.loads(str(report(analyse(results))["summary.json"]))
    assert document["title"].startswith("On average PyTorch 2.x is")
    assert (document["grade"], document["failed"]) == ("fair", 2)
    assert document["tests"] == results.rounds["cell"].nunique()
    assert "cells" not in document


def test_the_index_links_every_run_with_its_answer() -> None:
    index = dict(site([], [summary("b"), summary("a")], None))["index.html"]
    assert index.index('href="runs/b/index.html"') < index.index('href="runs/a/index.html"')
    assert "title of b" in index
    assert "2 faster, 1 can" in index


def test_a_step_is_a_change_of_level_with_its_interval() -> None:
    (change,) = trend(nights()).changes
    assert (change.index, change.point.run) == (26, run_of(26))
    assert change.ratio_low < 1.08 < change.ratio_high
    assert change.ratio == pytest.approx(1.08, rel=0.01)


def test_levels_are_compared_only_within_what_was_measured_alike() -> None:
    steady = nights(step=1.0)
    rebased = [*steady, *(each._replace(ratio=each.ratio * 2, base_digest="sha256:2") for each in nights(step=1.0))]  # type: ignore[operator]
    of_two = trend(rebased)
    assert of_two.changes == ()
    assert [(len(part), part[0]) for part in of_two.segments] == [(30, 0), (30, 30)]
    assert [mean for _, _, mean in of_two.level_means] == pytest.approx([0.8, 1.6], rel=0.005)


def test_the_nights_of_a_device_share_a_false_discovery_rate() -> None:
    small = nights(30, step=1.016, at=22)
    alone = trend(small).changes
    assert len(alone) == 1
    series = [("venv CPU", CELL, small)]
    series += [("venv CPU", CELL.replace("train", f"p{number}"), nights(30, step=1.0)) for number in range(80)]
    series += [("venv GPU", CELL, small)]
    changes = changes_together(trends_of(series, {}, {}))
    together, *_, on_gpu = trends_of(series, {}, {}, changes)
    assert on_gpu.changes == alone
    assert [change.index for change in together.changes] == [change.index for change in alone]
    assert together.change_points is not None
    assert together.change_points[0][0].detected > trend_detected(small)


def trend_detected(points: list[SeriesPoint]) -> int:
    """Return the night that detects the first change of a trend by itself."""
    (changes,) = change_points_of(trend(points).series)
    return changes[0].detected


def test_an_accepted_level_counts_as_good() -> None:
    points = nights(40, at=20)
    assert trend(points).change == pytest.approx(1.08, rel=0.01)
    assert trend(points, levels=(level(25),)).change == 1.0


def test_a_series_of_each_host_is_a_trend_and_confirmations_are_not_in_it() -> None:
    mixed = [point(0), point(1, host="there"), point(2, kind="confirmation"), point(3)]
    levels = {(CELL, "venv CPU"): [level(3)]}
    first, second = trends_of([("venv CPU", CELL, mixed)], levels, {})
    assert [(each.host, len(each.points), len(each.levels)) for each in (first, second)] == [
        ("here", 2, 1),
        ("there", 1, 0),
    ]
    assert len({first.page, second.page}) == len({first.device_page, second.device_page}) == 2


def test_only_the_newest_points_are_drawn() -> None:
    (long,) = trends_of([("venv CPU", CELL, [point(night) for night in range(MAX_POINTS + 5)])], {}, {})
    assert (len(long.points), long.left_out) == (MAX_POINTS, 5)


def test_what_changed_this_week_is_on_the_index() -> None:
    released = nights(step=1.0)
    released[27:] = [each._replace(release="2.9.1") for each in released[27:]]
    slower, other = trend(nights()), trend(released, levels=(level(28),))
    page = written(slower, other)["index.html"]
    index = html_text(page)
    assert "What changed this week" in index
    assert re.search(r'data-head="change of level"><b class="slower">[78]\.\d % slower', page)
    assert "2.9.0 → 2.9.1" in index
    assert "a new check" in index
    later = html_text(written(slower, newest=40)["index.html"])
    assert "Nothing changed this week" in later
    assert "2.9.0 → 2.9.1" not in later


def test_a_confirmed_regression_comes_first() -> None:
    change = ChangeEntry(cell=CELL, before=run_of(20), ratio=1.031, confirmed_in=run_of(29))
    confirmed = trend(nights(step=1.0), regression=change)
    suspected = Trend(cell=CELL.replace("train", "forward"), device="venv CPU", host="here", points=tuple(nights()))
    files = written(suspected, confirmed)
    page = files[f"trends/{confirmed.device_page}"]
    assert page.index(confirmed.page) < page.index(suspected.page)
    assert re.search(r'data-head="measured alternately"><b class="slower">3\.1 % slower', files["index.html"])
    assert "confirmed regression 3.1 % slower, measured alternately" in html_text(page)
    assert 'data-head="change of level"' in page
    assert "Confirmed regression" in html_text(files[f"trends/{confirmed.page}"])


def test_the_page_of_a_cell_has_its_charts_changes_levels_and_releases() -> None:
    points = nights()
    points[10:] = [each._replace(release="2.9.1") for each in points[10:]]
    of_cell = trend(points, levels=(level(15),))
    text = html_text(written(of_cell)[f"trends/{of_cell.page}"])
    for words in (
        "Time of a step as a share of that of torch-1.13",
        "Median time of a step",
        "Changes of level",
        "a new check",
        "2.9.1",
    ):
        assert words in text, words
    drawn = chart(of_cell, "ratio")
    assert drawn.svg.count('class="shift slower"') == 1
    assert drawn.svg.count('class="accepted"') == 1
    assert drawn.svg.count('class="release"') == 1
    assert drawn.svg.count('class="dot"') == drawn.svg.count('class="bar"') == 30
    assert [label.text for label in drawn.releases] == ["2.9.0", "2.9.1"]
    assert [label.text for label in drawn.changes] == ["8.0 % slower"], "no two labels overlap"


def test_without_a_base_the_trend_is_of_times_and_without_an_interval_none_is_drawn() -> None:
    bare: dict[str, Any] = {"seconds_low": None, "seconds_high": None, "base": "", "kind": "import"}
    of_times = trend([point(night, None, 0.01 * (1 + night % 2), **bare) for night in range(3)])
    assert not of_times.has_ratios
    page = written(of_times)[f"trends/{of_times.page}"]
    assert "above 1 is slower" not in html_text(page)
    assert 'class="bar"' not in chart(of_times, "seconds").svg
    assert "imported" in html_text(page)


@pytest.mark.parametrize(
    "points",
    [
        [point(0)],
        [point(0), point(0)],
        [point(0, seconds=1e-12), point(1, seconds=1e9)],
        [point(0, None), point(1, 1.0), point(2, None)],
        [point(night, 1.0, seconds_low=1e-9, seconds_high=1e6) for night in range(5)],
    ],
    ids=["one", "same time", "21 orders", "some ratios", "wide intervals"],
)
def test_charts_of_unusual_series_have_numbers_within_the_picture(points: list[SeriesPoint]) -> None:
    of_cell = trend(points)
    for kind in ("ratio", "seconds") if any(each.ratio for each in points) else ("seconds",):
        drawn = chart(of_cell, kind)
        assert "nan" not in drawn.svg
        assert "inf" not in drawn.svg
        assert drawn.ticks
        places = "".join(re.findall(r' d="([^"]*)"', drawn.svg))
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", places)]
        assert all(-20 <= number <= 1020 for number in numbers)
    assert "nan" not in spark(row_of(of_cell).spark)
    assert written(of_cell)


def test_labels_do_not_overlap_on_a_phone() -> None:
    nightly = trend([point(night, release=f"2.11.0.dev202609{night:02}") for night in range(30)])
    shown = chart(nightly, "ratio").releases
    assert 1 <= len(shown) <= 3
    assert shown[-1].text == "2.11.0.dev20260929", "the newest release always has its label"
    ends = [label.ends for label in shown]
    assert all(before[1] < after[0] for before, after in pairwise(ends))
    assert all(-1 <= start < end <= 101 for start, end in ends)


def test_pages_of_a_device_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGE_ROWS", 2)
    cells = [CELL.replace("/c/", f"/c{number}/") for number in range(5)]
    files = written(*(Trend(cell=name, device="d", host="", points=(point(0),)) for name in cells))
    of_device = [name for name in files if "device-" in name]
    assert len(of_device) == 3
    assert sum(files[name].count("<tr>") - 1 for name in of_device) == 5
    assert all(re.search(rf'href="{Path(of_device[1]).name}"', files[name]) for name in (of_device[0], of_device[2]))


def test_hostile_names_stay_text() -> None:
    change = ChangeEntry(cell=CELL, before=EVIL, confirmed_in=EVIL)
    hostile = Trend(
        cell=EVIL,
        device=EVIL,
        host=EVIL,
        points=tuple(point(night, release=f"{EVIL}{night}", base=EVIL, run=f"{EVIL}{night}") for night in range(3)),
        levels=(replace(level(1, EVIL), run=f"{EVIL}1", person=EVIL),),
        regression=change,
    )
    for name, content in written(hostile, newest=2).items():
        assert "<script" not in content, name
        assert "\u202e" not in content, name
        assert re.fullmatch(r"[a-z0-9./-]+", name)


def test_the_site_has_the_page_of_each_run_and_no_link_to_what_it_lacks(tmp_path: Path) -> None:
    for later, seconds in enumerate((1.0, 2.0)):
        failed = bad(cell("tf-2.x", "basic-lstm-cell"), 0, "oom", "too much")
        records = [*(good(cell(), number, [seconds, seconds]) for number in range(3)), failed]
        make(tmp_path / "reports", records, later=later)
    notes: list[str] = []
    index = write_site(tmp_path / "reports", tmp_path / "site", 0.02, notes.append)
    assert notes == [f"2 runs in {tmp_path / 'site'}"]
    runs = sorted((tmp_path / "site/runs").glob("*/index.html"))
    assert len(runs) == 2
    trends = sorted((tmp_path / "site/trends").glob("*.html"))
    assert len(trends) == 2, "one of the device, and one of the cell with a good record"
    for page in (index, *runs, *trends):
        links = re.findall(r'href="([^"#]+)"', page.read_text())
        assert all(link == "data:," or (page.parent / link).exists() for link in links)
    for page in runs:
        assert "basic-lstm-cell/asr-lstm/1x320-ce-short/train/fp32" in page.read_text()
        assert f'href="runs/{page.parent.name}/index.html"' in index.read_text()
        assert (page.parent / "report.md").exists()
        of_run = tmp_path / "reports/runs" / page.parent.name / "index.html"
        assert {"samples.csv", "logs/"} <= set(re.findall(r'href="([^"#]+)"', of_run.read_text()))


HOSTILE_PAGES = (
    "<!doctype html><script>alert(1)</script>",
    "<html><head><meta http-equiv=refresh content='0; url=https://evil'></head></html>",
    "",
)


@pytest.mark.parametrize("page", [*HOSTILE_PAGES, "refresh", "policy"])
def test_a_page_that_this_program_did_not_write_is_not_published(page: str, tmp_path: Path) -> None:
    run = make(tmp_path / "reports", [good(cell(), number, [1.0, 1.0]) for number in range(3)])
    published = tmp_path / "site/runs" / run.id / "index.html"
    write_site(tmp_path / "reports", tmp_path / "site", 0.02, lambda _: None)
    honest, of_run = published.read_text(), run.path / "index.html"
    changed = {
        "refresh": of_run.read_text().replace("<body>", '<body><META http-equiv="refresh" content="0; url=//evil">'),
        "policy": of_run.read_text().replace("default-src 'none'", "default-src *"),
    }.get(page, page)
    assert changed != of_run.read_text()
    of_run.write_text(changed)
    write_site(tmp_path / "reports", tmp_path / "site", 0.02, lambda _: None)
    assert published.read_text() == honest


def test_a_page_of_this_program_is_published_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "reports", [good(cell(), number, [1.0, 1.0]) for number in range(3)])
    write_site(tmp_path / "reports", tmp_path / "site", 0.02, lambda _: None)
    monkeypatch.setattr("runner.watch.site.write_report", lambda *_: pytest.fail("it was written again"))
    write_site(tmp_path / "reports", tmp_path / "site", 0.02, lambda _: None)


def test_a_run_of_the_future_is_not_the_newest_week(tmp_path: Path) -> None:
    with History.open(f"sqlite:///{tmp_path}/history.db") as history:
        for number in range(3):
            history.add(night(number))
        history.add(night(4, at="2036-01-01T00:00:00Z"))
    notes: list[str] = []
    index = write_site(tmp_path, tmp_path / "site", 0.02, notes.append, now=datetime(2026, 1, 5, tzinfo=UTC))
    assert notes[0] == "1 run of the history in the future, not taken for the newest"
    week = html_text(index.read_text()).partition("this week")[2].partition("Trends by device")[0]
    assert "From 2025-12-27 to" in week


def test_a_regression_of_another_metric_has_its_line_and_its_trend(tmp_path: Path) -> None:
    """More memory, and a slower import of an environment, opened alerts of which the site said nothing."""
    of_memory = replace(measured(seconds=300 * 2.0**20), metric="memory")
    of_import = replace(measured(environment_cell("torch-2.x", BY_NAME["import"]).id, seconds=2.5), metric="import")
    last = night(3).run
    changes = tuple(
        ChangeEntry(cell=each.cell, metric=each.metric, before=night(0).run, ratio=ratio, confirmed_in=last)
        for each, ratio in ((of_memory, 1.31), (of_import, 1.15))
    )
    with History.open(f"sqlite:///{tmp_path}/history.db") as history:
        for number in range(4):
            history.add(
                night(number, measured(), metrics=(of_memory, of_import), changes=changes if number == 3 else ())
            )
    index = write_site(tmp_path, tmp_path / "site", 0.02, lambda _: None, now=datetime(2026, 1, 5, tzinfo=UTC))
    page, text = index.read_text(), html_text(index.read_text())
    regressions = text.partition("Regressions")[2].partition("What changed")[0]
    for words in ("peak memory of the steps", "1.31x more memory", "import of the framework", "15 % slower to import"):
        assert words in regressions, words
    assert "1 test" in text.partition("Trends by device")[2]
    links = re.findall(r'href="(trends/torch[^"]*)"', page.partition('id="regressions"')[2].partition("</section>")[0])
    imports, memory = (html_text((tmp_path / "site" / link).read_text()) for link in links)
    assert "300 MiB" in memory
    assert "Median peak memory of the steps" in memory
    assert "1.31x more memory than in run" in memory
    assert "2.50 s" in imports
    assert len(list((tmp_path / "site/trends").glob("torch*.html"))) == 3, "others have no trend"


MEMORY, IMPORT = (
    replace(measured(seconds=46 * 2.0**20), metric="memory"),
    replace(measured(environment_cell("torch-2.x", BY_NAME["import"]).id, seconds=2.0), metric="import"),
)
OF_MEMORY = ChangeEntry(
    cell=MEMORY.cell,
    metric="memory",
    before=night(2).run,
    state="measured-again",
    verdict="more",
    ratio=1.304,
    ratio_low=1.29,
    ratio_high=1.32,
    confirmed_in=night(3).run,
)


def week_of(folder: Path, *changes: ChangeEntry, nights: int = 6) -> str:
    """Return what changed this week on the site of some nights; the fourth and later ones have changes and 60 MiB."""
    folder.mkdir(exist_ok=True)
    with History.open(f"sqlite:///{folder}/history.db") as history:
        for number in range(nights):
            memory = replace(MEMORY, seconds=(60 if number >= 3 else 46) * 2.0**20)
            metrics = (memory, replace(IMPORT, seconds=1.8 if number >= 3 else 2.0))
            history.add(night(number, measured(), metrics=metrics, changes=changes if number >= 3 else ()))
    index = write_site(folder, folder / "site", 0.02, lambda _: None, now=datetime(2026, 3, 1, tzinfo=UTC))
    return index.read_text().partition('id="week"')[2].partition("</section>")[0]


def test_changes_of_other_metrics_are_among_what_changed_this_week(tmp_path: Path) -> None:
    faster = replace(OF_MEMORY, cell=IMPORT.cell, metric="import", verdict="faster", ratio=0.9, confirmed_in="")
    week = week_of(tmp_path, OF_MEMORY, replace(faster, ratio_low=0.89, ratio_high=0.91), nights=4)
    text = html_text(week)
    assert "Changes of other metrics, measured alternately" in text
    assert "onfirmed changes" not in text, "no night confirms an improvement"
    assert week.count('data-head="values of the two runs">46.0 MiB') == week.count(">values of the two runs</th>") == 1
    for words in ("peak memory of the steps", "1.30x more memory", "46.0 MiB → 60.0 MiB", "1.29x to 1.32x"):
        assert words in text, words
    for words in ("import of the framework", "11 % faster to import", "2.00 s → 1.80 s"):
        assert words in text, words
    assert text.index("1.30x more memory") < text.index("11 % faster to import")
    assert "Nothing changed this week" not in text
    links = re.findall(r'href="(trends/torch[^"]*)"', week)
    assert len(links) == 2
    assert all((tmp_path / "site" / link).exists() for link in links)


def test_a_change_that_still_stands_is_listed_for_the_night_that_confirmed_it(tmp_path: Path) -> None:
    text = html_text(week_of(tmp_path, OF_MEMORY))
    assert text.count("1.30x more memory") == 1
    assert text.count("2026-01-04") == 1
    later = html_text(week_of(tmp_path / "later", OF_MEMORY, nights=14))
    assert "1.30x more memory" not in later
    assert "Nothing changed this week" in later
    assert "1.30x more memory" in html_text((tmp_path / "later/site/index.html").read_text()), "it still stands"


def test_the_strip_of_nights_shows_what_was_confirmed_and_no_candidates(tmp_path: Path) -> None:
    """With a build every night, each test is a candidate, and most turn out to be the same."""
    same = replace(OF_MEMORY, metric="time", verdict="same", ratio=1.0, confirmed_in="")
    week_of(tmp_path, OF_MEMORY, same, nights=5)
    strip = (tmp_path / "site/index.html").read_text().partition('id="nights"')[2].partition("</section>")[0]
    texts = re.findall(r'<li( class="regressed")? title="[^:]*:30: 1 test, ([^"]*)"', strip)
    assert texts == [
        *[("", "no regression confirmed")] * 3,
        (' class="regressed"', "1 regression confirmed"),
        ("", "no regression confirmed; 1 earlier one stands"),
    ]
    assert "a filled one confirmed a regression" in strip


@pytest.mark.parametrize(
    "unconfirmed",
    [
        replace(OF_MEMORY, confirmed_in=""),
        replace(OF_MEMORY, confirmed_in="", verdict="inconclusive"),
        replace(OF_MEMORY, confirmed_in="", verdict="same", ratio=1.0),
        replace(OF_MEMORY, confirmed_in="", verdict="", state="no-time"),
    ],
)
def test_what_no_night_confirmed_is_not_among_what_changed(unconfirmed: ChangeEntry, tmp_path: Path) -> None:
    assert "Nothing changed this week" in html_text(week_of(tmp_path, unconfirmed))


def test_a_quantile_that_changed_as_the_time_did_is_not_listed_again(tmp_path: Path) -> None:
    quantile = replace(measured(), metric="p95")
    faster = replace(OF_MEMORY, metric="p95", verdict="faster", ratio=0.8, confirmed_in="")
    of_time = replace(faster, metric="time")
    for folder, changes, count in ((tmp_path / "both", (faster, of_time), 0), (tmp_path / "alone", (faster,), 1)):
        folder.mkdir()
        with History.open(f"sqlite:///{folder}/history.db") as history:
            for number in range(4):
                history.add(night(number, measured(), metrics=(quantile,), changes=changes if number == 3 else ()))
        index = write_site(folder, folder / "site", 0.02, lambda _: None, now=datetime(2026, 1, 5, tzinfo=UTC))
        assert html_text(index.read_text()).count("faster at the 95th percentile") == count


def test_a_folder_without_runs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="holds no run with results"):
        write_site(tmp_path, tmp_path / "site", 0.02, print)
    assert not (tmp_path / "history.db").exists()
