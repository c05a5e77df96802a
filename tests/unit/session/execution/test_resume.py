"""What a resumed run measures and what it leaves, an engine that is gone, and the order of rounds."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.core.errors import EngineError, OutageError, ProvisionError, UsageError
from runner.core.model import (
    Canary,
    CaseFinished,
    Cell,
    Event,
    ExtraRound,
    GroupsFormed,
    Measurement,
    Outcome,
    Past,
    Plan,
    PlannedCell,
    Provisioned,
    RoundDisturbed,
    RoundTimes,
    Signs,
)
from runner.core.model.devices import ClockPolicy
from runner.core.progress import Progress
from runner.gpu.device import DeviceSession
from runner.measure.round_plan import abandoned_cells, reopened_cases
from runner.plan.document import fingerprint, plan_document, read_plan
from runner.session.execution.failures import recorded_ending
from runner.session.execution.header import check_environments
from runner.session.execution.recorder import RunRecorder
from runner.session.execution.resume import past
from tests.support.changed_runs import unsealed
from tests.support.fake_runs import bad, cell, good, make
from tests.support.fake_servers import GB, FakeBackend, block, cells, events, outcomes
from tests.unit.plan.test_planner import planned, small

TINY, LARGE = block(*cells("a/x", "a/y", "b/x")), block(*cells("a/x", "b/x", "b/y", case="large"))
WHERE = {"rnn-step/tiny": TINY, "rnn-step/large": LARGE}


def measured(run_events: list[Event]) -> list[tuple[str, int]]:
    """Return (cell id, round) of each outcome in order."""
    return [(event.cell.id, event.round) for event in run_events if isinstance(event, Outcome)]


def test_a_round_goes_through_all_cases_before_the_next_begins() -> None:
    backend = FakeBackend()
    all_outcomes = list(outcomes(backend, TINY, LARGE, restart=1))
    assert [outcome.round for outcome in all_outcomes] == [1] * 6 + [2] * 6 + [3] * 6
    assert len(backend.opened) == 3 * 2  # rounds x environments, however many cases there are
    for number in (1, 2, 3):
        cases = [outcome.cell.case for outcome in all_outcomes if outcome.round == number]
        assert cases in ([*["tiny"] * 3, *["large"] * 3], [*["large"] * 3, *["tiny"] * 3])


def test_the_order_of_the_cases_is_drawn_for_each_round() -> None:
    all_outcomes = list(outcomes(FakeBackend(), TINY, LARGE, rounds=20))
    assert {all_outcomes[6 * number].cell.case for number in range(20)} == {"tiny", "large"}


def test_a_case_that_lacks_the_base_of_a_group_is_measured_without_it() -> None:
    all_outcomes = list(outcomes(FakeBackend(), TINY, block(*cells("b/x", "b/y", case="large"))))
    assert {outcome.cell.environment for outcome in all_outcomes if outcome.cell.case == "large"} == {"b"}


def test_the_base_alone_is_not_measured_again_for_a_further_group() -> None:
    backend = FakeBackend()
    backend.sizes = {"a": GB, "b": 2 * GB, "c": 2 * GB}
    shared = block(*cells("a/x", "b/x", "c/x"))
    blocks = (shared, block(*cells("a/x", case="alone")), block(*cells("a/x", "c/x", case="pair")))
    all_outcomes = list(outcomes(backend, *blocks, memory=7 * GB, rounds=2))
    rounds: dict[tuple[str, str], list[int]] = {}
    for outcome in all_outcomes:
        rounds.setdefault((outcome.cell.case, outcome.cell.environment), []).append(outcome.round)
    assert {name: sorted(numbers) for name, numbers in rounds.items()} == {
        ("tiny", "a"): [1, 2, 3, 4],
        ("tiny", "b"): [1, 2],
        ("tiny", "c"): [3, 4],
        ("alone", "a"): [1, 2],
        ("pair", "a"): [3, 4],
        ("pair", "c"): [3, 4],
    }


def test_what_was_decided_and_finished_is_said_in_order() -> None:
    run_events = list(events(FakeBackend(), TINY, LARGE, rounds=2))
    assert run_events[0] == GroupsFormed((("a", "b"),))
    case = ["Outcome"] * 3 + ["CaseFinished"]
    assert [type(event).__name__ for event in run_events[1:]] == [*case, *case, "RoundTimes"] * 2
    ends = [event for event in run_events if isinstance(event, CaseFinished)]
    assert {(event.case_id, event.round) for event in ends} == {
        (case_id, number) for case_id in WHERE for number in (1, 2)
    }
    before: list[Event] = []
    for event in run_events:
        if isinstance(event, CaseFinished):
            assert {outcome.cell.case_id for outcome in before if isinstance(outcome, Outcome)} == {event.case_id}
            before = []
        elif isinstance(event, Outcome):
            before.append(event)


def cut(run_events: list[Event], count: int) -> Past:
    """Return what a run has behind it that was killed after some events."""
    kept = run_events[:count]
    done = [event for event in kept if isinstance(event, Outcome)]
    grouped = [event.groups for event in kept if isinstance(event, GroupsFormed)]
    return Past(
        finished=frozenset((event.case_id, event.round) for event in kept if isinstance(event, CaseFinished)),
        attempts={(event.cell.case_id, event.round): event.attempt for event in done},
        servers={"a": 1, "b": 1} if done else {},
        groups={"cpu": grouped[0]} if grouped else {},
    )


def test_wherever_a_run_is_cut_the_rest_comes_in_the_same_order() -> None:
    uncut = list(events(FakeBackend(), TINY, LARGE, seed=5))
    for count in range(len(uncut) + 1):
        before = cut(uncut, count)
        rest = list(events(FakeBackend(), TINY, LARGE, seed=5, past=before))
        assert measured(rest) == [
            (name, number) for name, number in measured(uncut) if (case_of(name), number) not in before.finished
        ]
        for event in rest:
            if isinstance(event, Outcome):
                assert event.attempt == before.attempts.get((event.cell.case_id, event.round), 0) + 1
        assert not [event for event in rest if isinstance(event, GroupsFormed)] or count == 0


def case_of(name: str) -> str:
    """Return the case in a cell's id."""
    return "/".join(name.split("/")[2:4])


def test_nothing_is_started_where_nothing_is_left() -> None:
    backend = FakeBackend()
    finished = frozenset((case_id, number) for case_id in WHERE for number in (1, 2, 3))
    assert list(events(backend, TINY, LARGE, past=Past(finished=finished, groups={"cpu": (("a", "b"),)}))) == []
    assert backend.opened == []


def test_servers_are_numbered_on() -> None:
    before = Past(servers={"a": 4}, groups={"cpu": (("a", "b"),)}, finished=frozenset({("rnn-step/tiny", 1)}))
    all_outcomes = list(outcomes(FakeBackend(), TINY, past=before, restart=1))
    servers = {(outcome.cell.environment, outcome.round): outcome.facts["server"] for outcome in all_outcomes}
    assert servers == {("a", 2): "a#5", ("a", 3): "a#6", ("b", 2): "b#1", ("b", 3): "b#2"}


def test_a_cell_that_failed_for_good_is_not_asked_again_and_a_crash_is() -> None:
    (wrong, crashed, lost) = cells("a/x", "a/y", "b/x")
    before = Past(failed=frozenset({(wrong, "wrong-result"), (crashed, "crash"), (lost, "engine")}))
    assert abandoned_cells(before) == {wrong}
    measured_cells = {outcome.cell for outcome in outcomes(FakeBackend(), TINY, past=before)}
    assert measured_cells == {crashed, lost}


def test_the_groups_of_the_beginning_stay() -> None:
    backend = FakeBackend()
    before = Past(groups={"cpu": (("a", "b"), ("a", "c"))})
    all_outcomes = list(outcomes(backend, block(*cells("a/x", "b/x", "c/x")), past=before, rounds=2))
    assert {outcome.round for outcome in all_outcomes if outcome.cell.environment == "c"} == {3, 4}
    assert {frozenset(alive) for alive in backend.alive} == {frozenset("ab"), frozenset("ac")}


def test_an_engine_that_is_gone_ends_the_run_and_fails_no_cell() -> None:
    backend = FakeBackend()
    backend.does("a/x", "ok", "loses-its-engine")
    all_outcomes: list[Outcome] = []
    with pytest.raises(EngineError, match="the container engine stopped answering"):
        drain(outcomes(backend, TINY), all_outcomes)
    assert {outcome.reply["status"] for outcome in all_outcomes} == {"ok"}
    assert 3 <= len(all_outcomes) < 6
    assert all(server.closed for server in backend.opened)


def drain(running: Iterator[Outcome], all_outcomes: list[Outcome]) -> None:
    """Add outcomes one by one, so that those before an error are kept."""
    for outcome in running:
        all_outcomes.append(outcome)  # noqa: PERF402


def test_an_engine_that_is_gone_when_a_server_starts_ends_the_run() -> None:
    backend = FakeBackend()
    all_outcomes: Iterator[Outcome] = outcomes(backend, TINY, restart=1)
    for _ in range(3):
        next(all_outcomes)
    backend.gone = True
    with pytest.raises(EngineError, match="cannot remove the container"):
        next(all_outcomes)


def test_an_engine_that_loses_one_server_and_answers_is_a_failure_that_may_not_come_again() -> None:
    backend = FakeBackend()
    backend.stays_gone = False
    backend.does("a/x", "loses-its-engine")
    classes = [outcome.reply.get("class") for outcome in outcomes(backend, TINY) if outcome.cell == TINY.cells[0]]
    assert classes == ["engine", None, None]


def test_an_engine_that_refuses_one_environment_stops_no_other() -> None:
    backend = FakeBackend()
    backend.refused = "a"
    all_outcomes = list(outcomes(backend, TINY))
    failed = [outcome for outcome in all_outcomes if outcome.cell.environment == "a"]
    assert [outcome.reply["class"] for outcome in failed] == ["engine", "engine"]
    assert failed[0].reply["reason"] == "cannot start a container for 'a'"
    assert [outcome.reply["status"] for outcome in all_outcomes if outcome.cell.environment == "b"] == ["ok"] * 3


def test_a_plan_is_read_back_as_it_was() -> None:
    made = planned(small())
    document = plan_document(made)
    cases = {block.case_id: dict(block.spec) for block in made.blocks}
    read = read_plan(document, cases, made.measurement, Past())
    assert plan_document(read) == document
    assert (read.blocks, read.measurement, read.device, read.backend) == (
        made.blocks,
        made.measurement,
        made.device,
        made.backend,
    )
    assert fingerprint(plan_document(read), cases) == fingerprint(document, cases)


def test_a_fingerprint_changes_with_the_plan_and_with_its_cases() -> None:
    original = fingerprint({"version": 1, "cells": [1]}, {"a": {"steps": 3}})
    assert original == fingerprint({"cells": [1]}, {"a": {"steps": 3}})
    assert (
        len({original, fingerprint({"cells": [2]}, {"a": {"steps": 3}}), fingerprint({"cells": [1]}, {"a": {}})}) == 3
    )


def test_what_is_behind_a_run_is_read_from_its_journal_and_records(tmp_path: Path) -> None:
    first, second = cell(), cell("tf-1.15", "lstm-cell")
    run = make(
        tmp_path,
        [
            good(first, 1, [1.0], server="torch-2.x#1"),
            good(second, 1, [1.0], server="tf-1.15#1"),
            good(first, 2, [1.0], server="torch-2.x#12"),
            bad(second, 2, "oom", "too much", server="tf-1.15#9"),
        ],
    )
    run.note("groups", device="cpu", groups=[["torch-2.x", "tf-1.15"]])
    run.note("round", case=first.case_id, round=1)
    history = past(run, run.journal())
    assert history == Past(
        finished=frozenset({(first.case_id, 1)}),
        attempts={(first.case_id, 1): 1, (first.case_id, 2): 1},
        failed=frozenset({(second, "oom")}),
        servers={"torch-2.x": 12, "tf-1.15": 9},
        groups={"cpu": (("torch-2.x", "tf-1.15"),)},
        signs={(first, 1): (1, Signs()), (second, 1): (1, Signs())},
    )


def test_how_far_rounds_were_disturbed_is_read_from_the_records_that_count(tmp_path: Path) -> None:
    of = cell()
    first = good(of, 1, [1.0, 1.0], others_busy=0.9, turns=[1, 1], turns_with="1/0")
    run = make(tmp_path, [first, good(of, 2, [1.0])])
    run.note("round", case=of.case_id, round=1)
    run.note("disturbed", **RoundDisturbed(of.case_id, 1, 1, (of,), 1.8).event())
    before = past(run, run.journal())
    assert before.signs == {(of, 1): (1, Signs(0.9, "1/0", 1.0))}  # round 2 did not end: it is measured as a whole
    assert before.disturbed == {(of, 1, 1)}
    run.add(replace(good(of, 1, [1.0], others_busy=0.1), attempt=2))  # a repeat, which was interrupted
    before = past(run, run.journal())
    assert before.signs == {}  # the round is open again
    assert (before.finished, before.attempts[of.case_id, 1]) == (frozenset(), 2)


def test_the_cases_of_an_environment_that_an_outage_left_out_start_anew(tmp_path: Path) -> None:
    first, missing = cell(), cell("tf-1.15", "lstm-cell")
    other = cell(case="large")
    run = make(tmp_path, [good(first, 1, [1.0]), good(other, 1, [1.0]), bad(missing, 1, "outage", "no answer")])
    run.note("groups", device="cpu", groups=[["torch-2.x"]])
    for name in (first.case_id, other.case_id):
        run.note("round", case=name, round=1)
    before = past(run, run.journal())
    assert (before.finished, before.groups) == (frozenset({(other.case_id, 1)}), {})
    assert abandoned_cells(before) == frozenset()
    assert reopened_cases(before) == {first.case_id}

    run.note("resumed", digests={"tf-1.15": "1"}, anew=[first.case_id])
    journal = run.journal()  # also where the run is interrupted before the missing cell has a new record
    assert (journal.finished, journal.groups) == (frozenset({(other.case_id, 1)}), {})


@pytest.mark.parametrize(("again", "how"), [("", "outage"), ("runner nightly", "done")])
def test_a_run_that_can_be_resumed_stays_unfinished_after_an_outage(again: str, how: str, tmp_path: Path) -> None:
    run, notes = make(tmp_path, []), list[str]()
    with recorded_ending(run, Progress(notes.append), again, missing=["np-old"]):
        pass
    assert run.journal().ended == how
    assert any(f"runner run --resume {run.path}` tries again to build np-old" in note for note in notes) != bool(again)


def test_batches_of_a_gpu_are_read_from_the_records(tmp_path: Path) -> None:
    decided: dict[str, Any] = {"device": "cuda", "batch": 64, "wait_seconds": 1e-5}
    first, second = cell(), cell(phase="train+published")
    records = [good(first, 1, [1.0], **decided), good(first, 2, [1.0], **{**decided, "batch": 128})]
    records += [good(second, 1, [1.0], **decided), good(cell("tf-1.15", "lstm-cell"), 1, [1.0], batch=8)]
    run = make(tmp_path, records)
    assert past(run, run.journal()).batches == {(first, 1): 64, (first, 2): 128}


def test_what_a_run_has_spent_is_read_from_its_journal_whatever_was_written_last(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), number, [1.0]) for number in (1, 2)], each=4.0)
    assert [entry.elapsed for entry in run.journal().entries] == [4.0, 8.0]
    assert past(run, run.journal()).elapsed == 8.0
    run.note("canary", case=cell().case_id, round=3, seconds=0.5, spent=8.75)
    run.note("begun", digests={})
    run.note("resumed", digests={})
    assert past(run, run.journal()).elapsed == 8.75
    run.add(good(cell(), 3, [1.0]))  # by a program that did not write it down
    assert past(run, run.journal()).elapsed == 8.75


CPU = DeviceSession(None, ClockPolicy(), pytest.fail)


def test_each_event_is_kept_with_what_was_spent_until_then(tmp_path: Path) -> None:
    (first, second) = cells("a/x", "b/x")
    both = tuple(PlannedCell(cell=each, device="cpu", seconds=3.0) for each in (first, second))
    plan = Plan(
        device="cpu",
        backend="fake",
        measurement=Measurement(),
        cells=both,
        blocks=(block(first, second),),
        frameworks=dict.fromkeys("ab", "torch"),
    )
    run = make(tmp_path, [])
    recorder = RunRecorder(plan, run, Progress(lambda _: None))
    reply = {"status": "ok", "seconds": [0.5]}
    kept: list[Event] = [
        GroupsFormed((("a", "b"),)),
        Canary("rnn-step/tiny", 1, 0.01),
        Outcome(cell=first, round=1, reply=reply, facts={}, ready=made("a", "1")),
        Outcome(cell=second, round=1, reply={"status": "failed", "class": "oom"}, facts={}, ready=made("b", "1")),
        CaseFinished("rnn-step/tiny", 1),
        RoundTimes(1, {"start": 1.5, "samples": 0.0}),
        ExtraRound(4, frozenset({first})),
    ]
    for count, event in enumerate(kept, 1):
        recorder.record(event, count + 0.00049, CPU)
    lines = [json.loads(line) for line in (run.path / "journal.jsonl").read_text().splitlines()[1:]]
    names = ["groups", "canary", "measured", "measured", "round", "times", "further"]
    assert [(line["event"], line["spent"]) for line in lines] == list(zip(names, range(1, 8), strict=True))
    assert run.journal().times == ((1, {"start": 1.5}),)


def test_a_repeat_is_expected_when_it_comes_and_replaces_only_what_it_betters(tmp_path: Path) -> None:
    (first, second) = cells("a/x", "b/x")
    plan = Plan(
        device="cpu",
        backend="fake",
        measurement=Measurement(rounds=1),
        cells=tuple(PlannedCell(cell=each, device="cpu", seconds=3.0) for each in (first, second)),
        blocks=(block(first, second),),
        frameworks=dict.fromkeys("ab", "torch"),
    )
    run, progress = make(tmp_path, []), Progress(lambda _: None)
    recorder = RunRecorder(plan, run, progress)
    good_reply, failed = {"status": "ok", "seconds": [0.5]}, {"status": "failed", "class": "crash", "reason": "gone"}

    def record(of: Cell, reply: dict[str, Any], attempt: int) -> None:
        ready = made(of.environment, "1")
        recorder.record(Outcome(cell=of, round=1, attempt=attempt, reply=reply, facts={}, ready=ready), 1.0, CPU)

    record(first, good_reply, 1)
    record(second, good_reply, 1)
    assert (recorder.rounds_left.total(), progress.total, progress.completed) == (0, 2, 2)
    recorder.record(RoundDisturbed("rnn-step/tiny", 1, 1, (first, second), 2.0), 1.0, CPU)
    record(first, good_reply, 2)
    record(second, failed, 2)
    assert (progress.total, progress.completed) == (4, 4)
    assert recorder.totals().bad == ()
    assert {entry.cell: entry.attempt for entry in run.journal().counting()} == {first.id: 2, second.id: 1}


def test_a_journal_says_whether_a_run_is_finished(tmp_path: Path) -> None:
    run = make(tmp_path, [])
    assert run.journal().unfinished
    for how, again in (("interrupted", True), ("engine", True), ("error", True), ("done", False)):
        run.note("ended", how=how)
        assert (run.journal().ended, run.journal().unfinished) == (how, again)
    (run.path / "journal.jsonl").write_text("")
    assert not run.journal().unfinished


def test_resumed_runs_know_the_digests_of_all_their_environments(tmp_path: Path) -> None:
    run = make(tmp_path, [])
    run.note("begun", digests={"a": "1"})
    run.note("ended", how="engine")
    run.note("resumed", digests={"b": "2"})
    assert run.journal().header["digests"] == {"a": "1", "b": "2"}
    assert run.journal().ended is None


def test_a_journal_of_the_first_version_is_read(tmp_path: Path) -> None:
    run = make(tmp_path, [good(cell(), 1, [1.0])])
    path = run.path / "journal.jsonl"
    old = unsealed(path.read_text().splitlines()[1]).replace('"version": 2, "event": "measured"', '"version": 1')
    assert '"event"' not in old
    path.write_text(old + "\n")
    assert [record.seconds for record in run.records()] == [(1.0,)]
    assert not run.journal().unfinished


def test_an_event_of_the_journal_that_lacks_something_is_left_out_with_its_place(tmp_path: Path) -> None:
    run = make(tmp_path, [])
    run.note("round", case="a/b")
    (warning,) = run.journal().warnings
    assert warning.endswith("journal.jsonl:2: round is missing")


def made(name: str, digest: str) -> Provisioned:
    return Provisioned(environment=name, framework="torch", handle="h", digest=digest, seconds=0.0, cached=True)


def test_environments_that_are_not_as_they_were_are_named_all_at_once() -> None:
    known = {"a": "1", "b": "2", "c": "3"}
    check_environments(
        known, {"a": made("a", "1"), "new": made("new", "9")}, {"other": ProvisionError("image-pull", "x")}
    )
    with pytest.raises(UsageError) as caught:
        check_environments(known, {"a": made("a", "7")}, {"b": ProvisionError("image-build", "no disk")})
    assert "b cannot be built again: no disk" in str(caught.value)
    with pytest.raises(OutageError, match="new cannot be built now: no answer"):
        check_environments(known, {}, {"new": ProvisionError("image-pull", "no answer", passing=True)})
    assert "a has changed since the run started (1 -> 7)" in str(caught.value)
