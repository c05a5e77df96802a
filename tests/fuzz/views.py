"""Everything that the program shows of stored runs: each view takes a reports folder."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.fuzz.examples import BASE, OTHER, TONIGHT

MARGIN = 0.02
NO_MATRIX = Path("/nowhere/matrix.yaml")


def load(reports: Path) -> None:
    """Read the samples, as ``runner.load_samples`` does."""
    from runner.analysis.dataset import load_samples

    load_samples(reports)


def report(reports: Path) -> None:
    """Write the report, then list the runs."""
    from runner.analysis.analyse import analyse_run
    from runner.session.listing import listing
    from runner.session.results import find_run, write_report

    run = find_run(reports, None)
    write_report(analyse_run(run, MARGIN), run)
    list(listing("runs", NO_MATRIX, reports))


def published(reports: Path) -> None:
    """Write the report with published figures next to it."""
    from runner.analysis.analyse import analyse_run
    from runner.session.results import find_run, write_report

    run = find_run(reports, TONIGHT)
    write_report(analyse_run(run, MARGIN), run, "braun2018")


def answer(reports: Path) -> None:
    """Show the answer and the summary of a run."""
    from runner.analysis.analyse import analyse_run
    from runner.report import answer_text
    from runner.session.results import find_run, report_summary, run_answer

    answer_text.text(run_answer(analyse_run(find_run(reports, None), MARGIN)), width=100, colour=True)
    report_summary(analyse_run(find_run(reports, TONIGHT), MARGIN))


def compare(reports: Path) -> None:
    """Compare two environments, and show the rows in every format."""
    from runner.report import FORMATS, chart_file, render
    from runner.session.results import comparison

    for best in (False, True):
        compared = comparison(NO_MATRIX, reports, [BASE, OTHER], best=best)
        for name in FORMATS:
            render(compared, name, width=80, colour=True)
        chart_file.content([compared], ".svg", compared.releases)


def compare_published(reports: Path) -> None:
    """Compare an environment of a named run with a publication."""
    from runner.report import render
    from runner.session.results import comparison

    names = [f"{OTHER}@{TONIGHT}", "published:braun2018/torch-0.4", BASE]
    render(comparison(NO_MATRIX, reports, names, best=True), "table")


def check(reports: Path) -> None:
    """Check the run."""
    from runner.session.check import check as check_run

    checked = check_run(reports, None, NO_MATRIX)
    checked.text(100, colour=True)
    json.dumps(checked.json(), allow_nan=False)
    assert checked.serious in {True, False}


def accuracy(reports: Path) -> None:
    """Show the errors against the reference."""
    from runner.report.accuracy import text
    from runner.session.results import find_run, run_accuracy

    text(run_accuracy(find_run(reports, None)), 100, colour=False)


def export(reports: Path) -> None:
    """Export the samples, and read them back."""
    from runner.analysis.dataset import export as export_run
    from runner.analysis.dataset import load_samples
    from runner.session.results import find_run

    for suffix in (".csv", ".parquet"):
        export_run(find_run(reports, None), reports / f"samples{suffix}")
        load_samples(reports / f"samples{suffix}")


def notebook(reports: Path) -> None:
    """Read a run as a notebook does."""
    from runner.session.notebook import load_run

    run = load_run(reports, reports, NO_MATRIX)
    assert str(run)
    assert run.table is not None
    assert run.chart.svg


def site(reports: Path) -> None:
    """Write the site over all runs, twice: the second time reports exist."""
    from runner.watch.site import write_site

    for _ in range(2):
        write_site(reports, reports / "site", MARGIN, lambda _: None)


def accept(reports: Path) -> None:
    """Accept a run as baseline."""
    from runner.nights.anchors_file import acceptances
    from runner.watch.series.accept import AcceptanceRequest
    from runner.watch.series.accept import accept as accept_cells

    at = "2026-11-24T12:00:00Z"
    accept_cells(reports, AcceptanceRequest(patterns=("torch-*", OTHER), run=None, reason="why", person="ann", at=at))
    assert acceptances(reports)


def resume(reports: Path) -> None:
    """Read a run as ``--resume`` does, up to where it would look for the engine; then continue to record it."""
    from runner.core.progress import Progress
    from runner.measure.batches import Batches
    from runner.measure.round_plan import RoundPlan, abandoned_cells
    from runner.session.execution import resume as resuming
    from runner.session.execution.header import check_environments, check_program, read_header
    from runner.session.execution.recorder import RunRecorder
    from runner.session.options import Options
    from runner.session.results import find_run
    from runner.session.stored_options import of_stored_plan
    from runner.store.run import runs

    for run in runs(reports):
        assert run.journal().unfinished in {True, False}
    run = find_run(reports, TONIGHT)
    with run.hold():
        journal = run.journal()
        header = read_header(run)
        check_program(run, header)
        plan = resuming.stored_plan(run, journal, header, print)
        of_stored_plan(header, tuple(plan.frameworks), Options()).to_argv()
        resuming._budget_note(plan)
        check_environments(header.digests, {}, {})
        abandoned_cells(plan.past)
        Batches(plan)
        recorder = RunRecorder(plan, run, Progress(lambda _: None))
        recorder.totals()
        groups = plan.past.groups.get("cpu") or (tuple(plan.frameworks),)
        order = RoundPlan(plan, tuple(plan.frameworks), groups)
        for number in range(1, 4):
            for of_group in order.rounds(number):
                list(order.steps(of_group, frozenset(cell for block in plan.blocks for cell in block.cells)))


def nightly(reports: Path) -> None:
    """Compare tonight's run with what earlier runs, nights and anchors hold."""
    from runner.analysis import dataset
    from runner.nights import anchors_file as pins
    from runner.nights import looks as history
    from runner.session.results import find_run
    from runner.watch.nightly import anchors, baseline
    from runner.watch.nightly.compared import against_anchors, against_baselines, anchors_to_compare

    tonight = find_run(reports, TONIGHT)
    results, nights = dataset.load_dataset(tonight), history.earlier_nights(reports)
    cells, header = baseline.measured_cells(results), tonight.journal().header
    anchored = anchors.find_anchors(reports, tonight, cells, nights)
    pins.write_anchors(reports, pins.device_of(header), anchored.pins)
    pins.anchor_digests(reports)
    accepted = {name: pin.run for name, pin in anchored.pins.items() if pin.accepted}
    failed = ("torch-1.0/lstm-cell-fused/asr-lstm/1x320-ce-short/train/fp32",)
    baselines = baseline.find_baselines(reports, tonight, results, failed, nights.open_cells, accepted)
    digests = header["digests"]
    rows = dict(baseline.compare_with_baselines(results, baselines.by_cell, MARGIN))
    changed = [*against_baselines(rows, baselines.by_cell, nights, digests)]
    others = anchors_to_compare(anchored.by_cell, baselines.by_cell)
    anchor_rows = dict(baseline.compare_with_baselines(results, others, MARGIN))
    against_anchors(anchor_rows, others, changed, nights, digests, MARGIN)
    list(anchors.drift_notes((), {}, nights, MARGIN))


VIEWS: Mapping[str, Callable[[Path], None]] = {
    view.__name__: view
    for view in (
        *(load, report, published, answer, compare, compare_published, check, accuracy, export),
        *(notebook, site, accept, resume, nightly),
    )
}
