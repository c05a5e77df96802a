"""Rounds over fake servers: what is measured, how servers end, and that all of them are closed."""

import contextlib
import itertools
from collections import Counter, deque
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.backends.sending import UnreadError
from runner.core.model import (
    Block,
    CaseSkipped,
    GroupsFormed,
    Limits,
    Measurement,
    ModelFiles,
    Outcome,
    Plan,
    Provisioned,
)
from runner.core.model.cells import is_plain, plain
from runner.core.paths import packaged_folder
from runner.measure.server_pool import ServerPool, admit, digest_of
from runner.measure.server_start import HELLO_SECONDS
from runner.measure.session import GRACE, SILENCE
from tests.support.fake_servers import CASE, GB, FakeBackend, FakeServer, block, cells, events, outcomes

FOUR = cells("a/x", "a/y", "b/x", "c/x")


def short_id(outcome: Outcome) -> str:
    return f"{outcome.cell.environment}/{outcome.cell.implementation}"


def orders(measured: list[Outcome]) -> list[list[str]]:
    """Return the cells of each round in the order measured."""
    rounds = itertools.groupby(measured, key=lambda outcome: outcome.round)
    return [[short_id(outcome) for outcome in outcomes] for _, outcomes in rounds]


def ends(measured: list[Outcome], name: str) -> list[str]:
    """Return the status or the failure class of one cell, round by round."""
    return [outcome.reply.get("class") or outcome.reply["status"] for outcome in measured if short_id(outcome) == name]


def pool_plan(*blocks: Block) -> Plan:
    """Return a plan of some blocks."""
    names = {name: "torch" for each in blocks for name in each.environments}
    measurement = Measurement(rounds=1, restart=100)
    return Plan(device="cpu", backend="fake", measurement=measurement, cells=(), blocks=blocks, frameworks=names)


def ready_of(*names: str) -> dict[str, Provisioned]:
    """Return environments that were built."""
    built = {"framework": "torch", "handle": "h", "digest": "d", "seconds": 0.0, "cached": True}
    return {name: Provisioned(environment=name, **built) for name in names}  # type: ignore[arg-type]


def all_closed(backend: FakeBackend) -> bool:
    return bool(backend.opened) and all(server.closed for server in backend.opened)


def test_every_cell_is_measured_once_in_each_round() -> None:
    measured = list(outcomes(FakeBackend(), block(*FOUR), rounds=5))
    assert [outcome.round for outcome in measured] == [number for number in range(1, 6) for _ in FOUR]
    assert Counter(outcome.cell for outcome in measured) == dict.fromkeys(FOUR, 5)
    assert all(sorted(turn) == ["a/x", "a/y", "b/x", "c/x"] for turn in orders(measured))
    assert all(set(outcome.reply["seconds"]) == {0.5} for outcome in measured)


def test_the_order_is_random_and_repeats_with_the_seed() -> None:
    first = orders(list(outcomes(FakeBackend(), block(*FOUR), rounds=8, seed=1)))
    assert first == orders(list(outcomes(FakeBackend(), block(*FOUR), rounds=8, seed=1)))
    assert first != orders(list(outcomes(FakeBackend(), block(*FOUR), rounds=8, seed=2)))
    assert len({tuple(turn) for turn in first}) > 4


def test_all_servers_of_a_block_run_while_a_cell_is_measured() -> None:
    backend = FakeBackend()
    list(outcomes(backend, block(*FOUR), restart=1))
    assert backend.alive == [{"a", "b", "c"}] * 12


@pytest.mark.parametrize("side_by_side", [1, 2])
def test_the_servers_of_a_later_round_import_at_the_same_time(side_by_side: int) -> None:
    backend = FakeBackend()
    list(outcomes(backend, block(*FOUR), rounds=3, restart=1, side_by_side=side_by_side))
    assert len(backend.opened) == 3 * 3
    assert backend.opened_at_hello[3:] == [6, 6, 6, 9, 9, 9]


def test_a_server_that_cannot_be_started_keeps_no_other_from_its_import() -> None:
    backend = FakeBackend()
    rounds = outcomes(backend, block(*FOUR), rounds=2, restart=1)
    measured = [next(rounds) for _ in FOUR]
    backend.refused = "b"
    measured += rounds
    failed = [(outcome.cell.environment, outcome.round) for outcome in measured if outcome.reply["status"] != "ok"]
    assert failed == [("b", 2)]


def test_servers_are_replaced_after_their_rounds_and_numbered() -> None:
    backend = FakeBackend()
    measured = list(outcomes(backend, block(*FOUR), rounds=5, restart=2))
    servers = {(outcome.cell.environment, outcome.round): outcome.facts["server"] for outcome in measured}
    for name in "abc":
        assert [servers[name, number] for number in range(1, 6)] == [f"{name}#{k}" for k in (1, 1, 2, 2, 3)]
    assert len(backend.opened) == 9
    assert all_closed(backend)


def test_an_outcome_has_the_facts_of_its_server() -> None:
    (outcome,) = outcomes(FakeBackend(), block(*cells("a/x")), rounds=1)
    server = {"python": "3.6.1", "import_seconds": 0.5, "import_cpu_seconds": 0.4, "server": "a#1", "packages": {}}
    assert outcome.facts == {"version": "1.0", **server}
    assert outcome.ready.environment == "a"


def test_requests_to_a_server() -> None:
    for limits_memory, memory in ((False, 8 * GB), (True, None)):
        backend = FakeBackend(limits_memory=limits_memory)
        list(outcomes(backend, block(*cells("a/x")), rounds=2, seconds=0.5, timeout=9.0, threads=3, memory=8 * GB))
        (server,) = backend.opened
        requests = [request for request in server.requests if request["op"] != "go"]
        assert [request["op"] for request in requests] == ["hello", "reference", "measure", "measure"]
        ids = [request["id"] for request in requests]
        assert len(set(ids)) == 4
        assert [request["id"] for request in server.requests if request["op"] == "go"] == [ids[2]] * 7 + [ids[3]] * 7
        hello, reference, first, second = requests
        assert (hello["framework"], hello["threads"], hello["device"]) == ("torch", 3, "cpu")
        assert (reference["loss"], reference["digest"], reference["key"]) == ([1.0], "d", first["key"])
        shared = {"op": "measure", "case": CASE, "device": "cpu", "seconds": 0.5, "timeout": 9.0, "memory": memory}
        of_cell = {
            "framework": "torch",
            "implementation": "x",
            "phase": "train",
            "precision": "fp32",
            "cache": "/cache/a",
        }
        fresh = {"already_verified": False, "turns": True, "process": "fork"}
        assert {name: first[name] for name in first if name not in {"id", "key"}} == shared | of_cell | fresh
        assert {**second, "id": ids[2]} == {**first, "already_verified": True}


def test_servers_of_users_networks_measure_nothing_else() -> None:
    backend, builtin = FakeBackend(), block(*cells("a/x"))
    of_user = replace(builtin, spec={"family": "model", "files": "sha256:1"})
    files = ModelFiles.of("net.py", {"net.py": b"class Torch: pass"})
    plan = replace(pool_plan(builtin, of_user), models={files.digest: files})
    with contextlib.closing(ServerPool(plan, ready_of("a"), backend, Limits(memory=GB), print)) as pool:
        opened = []
        for served in (builtin, builtin, of_user, of_user, None):
            pool.serve(served)
            session = pool.session("a")
            assert session is not None
            opened.append((session.name, session.networks, pool.cache(pool.ready["a"])))
    (first, second, third), identity = sorted({*opened}), digest_of(plan.models)
    assert opened == [first, first, second, second, third]
    assert [first[1:], second[1:], third[1:]] == [
        ("", "/cache/a"),
        (identity, f"/cache/a/networks-{identity}"),
        ("", "/cache/a"),
    ]
    assert all_closed(backend)


def test_networks_that_come_with_the_program_share_its_servers() -> None:
    entry = "encoder.py"
    shipped = ModelFiles.of(entry, {entry: (packaged_folder() / "examples" / entry).read_bytes()})
    changed = ModelFiles.of(entry, {entry: shipped.files[entry] + b"# changed\n"})
    builtin = block(*cells("a/x"))
    of_both = [replace(builtin, spec={"family": "model", "files": files.digest}) for files in (shipped, changed)]
    plan = replace(pool_plan(builtin, *of_both), models={files.digest: files for files in (shipped, changed)})
    with contextlib.closing(ServerPool(plan, ready_of("a"), FakeBackend(), Limits(memory=GB), print)) as pool:
        of_user = digest_of([changed.digest])
        assert [pool.tenant_of(each) for each in (builtin, *of_both)] == ["", "", of_user]
        assert [pool.serve(each) for each in (*of_both, None)] == ["", of_user, ""]


def test_a_plan_of_networks_alone_starts_their_servers_at_once() -> None:
    of_user = replace(block(*cells("a/x")), spec={"family": "model", "files": "sha256:1"})
    files = ModelFiles.of("net.py", {"net.py": b""})
    plan = replace(pool_plan(of_user), models={files.digest: files})
    with contextlib.closing(ServerPool(plan, ready_of("a"), FakeBackend(), Limits(memory=GB), print)) as pool:
        assert pool.tenant == digest_of(plan.models) != ""


def test_a_plain_process_is_asked_for_a_time_alone() -> None:
    backend = FakeBackend()
    cell = cells("a/x")[0]
    list(outcomes(backend, block(cell, plain(cell)), rounds=1))
    forked, control = sorted(backend.opened, key=lambda server: bool(server.requests[0]["load_in_child"]))
    by_op = [{r["op"]: r for r in server.requests if r["op"] != "go"} for server in (forked, control)]
    assert [list(requests) for requests in by_op] == [["hello", "reference", "measure"], ["hello", "measure"]]
    assert [requests["hello"]["load_in_child"] for requests in by_op] == [False, True]
    requested = [(r["measure"]["process"], r["measure"]["already_verified"]) for r in by_op]
    assert requested == [("fork", False), ("plain", True)]


def test_a_plain_process_is_in_the_group_of_its_original() -> None:
    backend = FakeBackend()
    originals = cells("a/x", "b/x", "c/x")
    sizes = {"a": GB, "b": GB, "c": GB}
    for name, size in sizes.items():
        backend.sizes[name] = size
    of_all = block(*originals, *map(plain, originals))
    formed = [event for event in events(backend, of_all, rounds=1, memory=5 * GB) if isinstance(event, GroupsFormed)]
    assert formed[0].groups == (("a", "b", "a@plain", "b@plain"), ("a", "c", "a@plain", "c@plain"))


def test_the_budget_has_a_case_without_its_controls_rather_than_none() -> None:
    first, second = cells("a/x", "b/x", case="one"), cells("a/x", "b/x", case="two")
    requested = []

    def over_budget(of: Block, _: float) -> str:
        controlled = any(is_plain(cell.environment) for cell in of.cells)
        requested.append((of.case_id, controlled))
        return "no time" if of.case_id == "rnn-step/two" or controlled else ""

    blocks = [block(*of, *map(plain, of)) for of in (first, second)]
    all_events = list(events(FakeBackend(), *blocks, rounds=2, over_budget=over_budget))
    measured = [event for event in all_events if isinstance(event, Outcome)]
    assert {outcome.cell for outcome in measured} == set(first)
    assert len(measured) == 4
    (skipped,) = (event for event in all_events if isinstance(event, CaseSkipped))
    assert (skipped.case_id, skipped.cells) == ("rnn-step/two", blocks[1].cells)
    assert sorted(requested) == [
        (case, controlled) for case in ("rnn-step/one", "rnn-step/two") for controlled in (False, True)
    ]


def test_everything_may_be_measured_in_plain_processes_but_what_is_fresh_or_no_step() -> None:
    backend = FakeBackend()
    train = cells("a/x")[0]
    compiled = replace(train, phase="compile")
    list(outcomes(backend, block(train, compiled), rounds=2, process="plain"))
    measured = [request for server in backend.opened for request in server.requests if request["op"] == "measure"]
    requested = {(request["phase"], request["process"]): request["already_verified"] for request in measured}
    assert requested == {("train", "plain"): True, ("compile", "fork"): True}  # of the second round
    assert "reference" in [request["op"] for server in backend.opened for request in server.requests]


def test_an_import_may_be_silent_longer_than_a_measurement() -> None:
    backend = FakeBackend()
    list(outcomes(backend, block(*cells("a/x")), rounds=1))
    hello, *others = [patience for patience in backend.opened[0].patience if patience > 0]
    assert hello == pytest.approx(HELLO_SECONDS + GRACE, abs=5)
    assert others
    assert all(patience <= SILENCE for patience in others[1:])


@pytest.mark.parametrize("kind", ["wrong-result", "timeout", "nan", "import"])
def test_a_permanent_failure_is_not_measured_again(kind: str) -> None:
    backend = FakeBackend()
    backend.does("a/x", kind)
    measured = list(outcomes(backend, block(*FOUR)))
    assert ends(measured, "a/x") == [kind]
    assert [ends(measured, name) for name in ("a/y", "b/x", "c/x")] == [["ok"] * 3] * 3


def test_a_crash_is_measured_again() -> None:
    backend = FakeBackend()
    backend.does("a/x", "crash")
    measured = list(outcomes(backend, block(*FOUR)))
    assert ends(measured, "a/x") == ["crash", "ok", "ok"]
    assert len(backend.opened) == 3


@pytest.mark.parametrize(
    ("deed", "kind", "reason", "again"),
    [
        ("dies", "crash", "killed by signal SIGSEGV", 3),
        ("is-gone", "crash", "killed by signal SIGSEGV", 3),
        ("babbles", "crash", "the harness server sent something that is not its protocol", 3),
        ("hangs", "timeout", "the harness server said nothing for 60 s", 1),
    ],
)
def test_a_lost_server_is_replaced_and_the_others_continue(deed: str, kind: str, reason: str, again: int) -> None:
    backend = FakeBackend()
    backend.does("a/x", deed)
    measured = list(outcomes(backend, block(*FOUR)))
    lost = next(outcome for outcome in measured if short_id(outcome) == "a/x")
    assert lost.reply == {"status": "failed", "class": kind, "reason": reason, "log": "last words of a"}
    assert lost.facts["server"] == "a#1"
    assert len(ends(measured, "a/x")) == again
    assert [ends(measured, name) for name in ("a/y", "b/x", "c/x")] == [["ok"] * 3] * 3
    assert Counter(server.environment for server in backend.opened) == {"a": 2, "b": 1, "c": 1}
    later = [outcome for outcome in measured if outcome.cell.environment == "a" and outcome.round > 1]
    assert {outcome.facts["server"] for outcome in later} == {"a#2"}
    assert all_closed(backend)


def test_a_failed_import_gives_one_record_for_each_cell() -> None:
    backend = FakeBackend()
    backend.hellos["a"] = deque(["import"])
    measured = list(outcomes(backend, block(*FOUR)))
    assert (ends(measured, "a/x"), ends(measured, "a/y"), ends(measured, "b/x")) == (["import"], ["import"], ["ok"] * 3)
    assert Counter(server.environment for server in backend.opened)["a"] == 1
    assert {outcome.reply["reason"] for outcome in measured if outcome.cell.environment == "a"} == {"it was import"}


def test_a_server_that_does_not_read_its_harness_is_a_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a container, it was a failure of the engine; with a process, one of the import."""
    backend = FakeBackend()
    others = backend.open

    def opened(ready: Provisioned, limits: Limits) -> FakeServer:
        if ready.environment == "a":
            raise UnreadError("read nothing for 60 s")
        return others(ready, limits)

    monkeypatch.setattr(backend, "open", opened)
    measured = list(outcomes(backend, block(*FOUR)))
    assert (ends(measured, "a/x"), ends(measured, "b/x")) == (["timeout"], ["ok"] * 3)
    reasons = {outcome.reply["reason"] for outcome in measured if outcome.cell.environment == "a"}
    assert reasons == {"the harness server read nothing for 60 s"}


def test_a_failed_import_of_a_replacement_ends_only_its_environment() -> None:
    backend = FakeBackend()
    backend.hellos["a"] = deque(["ok", "import"])
    measured = list(outcomes(backend, block(*FOUR), rounds=4, restart=2))
    assert ends(measured, "a/x") == ["ok", "ok", "import"]
    assert ends(measured, "b/x") == ["ok"] * 4


def test_an_environment_that_was_not_built_is_left_out() -> None:
    backend = FakeBackend()
    measured = list(outcomes(backend, block(*FOUR), block(*cells("b/x", case="unknown")), missing="b"))
    assert {outcome.cell.environment for outcome in measured} == {"a", "c"}
    assert "b" not in {server.environment for server in backend.opened}


def test_a_server_gets_each_reference_once() -> None:
    backend = FakeBackend()
    list(outcomes(backend, block(*cells("a/x", "a/y")), block(*cells("a/x", case="large")), restart=1))
    assert len(backend.opened) == 3
    for server in backend.opened:
        assert Counter(request["op"] for request in server.requests) == {
            "hello": 1,
            "reference": 2,
            "measure": 3,
            "go": 21,
        }


def test_environments_that_do_not_fit_in_memory_form_groups_with_the_base() -> None:
    backend = FakeBackend()
    backend.sizes = {"a": GB, "b": 2 * GB, "c": 2 * GB}
    measured = list(outcomes(backend, block(*FOUR), memory=7 * GB, rounds=2))
    assert {frozenset(alive) for alive in backend.alive} == {frozenset("ab"), frozenset("ac")}
    rounds = {(outcome.cell.environment, outcome.round) for outcome in measured}
    assert sorted(rounds) == [*(("a", k) for k in (1, 2, 3, 4)), ("b", 1), ("b", 2), ("c", 3), ("c", 4)]
    assert all_closed(backend)


def test_every_server_is_closed_if_the_caller_stops_early() -> None:
    backend = FakeBackend()
    running = cast("Generator[Outcome]", outcomes(backend, block(*FOUR)))
    next(running)
    assert not any(server.closed for server in backend.opened)
    running.close()
    assert all_closed(backend)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError])
def test_every_server_is_closed_after_an_interruption(kind: type[BaseException]) -> None:
    class Ear(list[str]):
        def append(self, text: str) -> None:
            super().append(text)
            if text.startswith("round 2"):
                raise kind

    backend = FakeBackend()
    with pytest.raises(kind):
        list(outcomes(backend, block(*FOUR), lines=Ear()))
    assert len(backend.opened) == 3
    assert all_closed(backend)


def test_a_failed_reference_fails_only_its_cells() -> None:
    backend = FakeBackend()
    measured = list(outcomes(backend, block(*cells("a/x", case="unknown")), block(*FOUR), rounds=2))
    (failed,) = [outcome for outcome in measured if outcome.cell.case == "unknown"]
    assert failed.reply["class"] == "crash"
    assert "could not be computed" in failed.reply["reason"]
    assert [outcome.reply["status"] for outcome in measured if outcome is not failed] == ["ok"] * 8
    assert all_closed(backend)


def test_a_server_that_cannot_be_closed_does_not_keep_others_open() -> None:
    backend = FakeBackend()
    backend.stuck = "a"
    with pytest.raises(OSError, match="cannot be ended"):
        list(outcomes(backend, block(*FOUR), rounds=1))
    assert all_closed(backend)


Sizes = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 10), max_size=8)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True), Sizes, st.integers(0, 20))
def test_admit_puts_the_base_in_each_group_and_the_others_in_one(
    names: list[str], sizes: dict[str, int], memory: int
) -> None:
    groups = admit(names, sizes, memory)
    assert all(group[0] == names[0] for group in groups)
    assert sorted(name for group in groups for name in group[1:]) == sorted(names[1:])
    for group in groups:
        assert len(group) <= 2 or sum(sizes.get(name, 0) for name in group) <= memory
        assert list(group) == sorted(group, key=names.index)
    if sum(sizes.get(name, 0) for name in names) <= memory:
        assert groups == (tuple(names),)


def test_all_servers_of_users_networks_start_together_where_a_round_changes_to_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    builtin = block(*cells("a/x", "b/x"))
    of_user = replace(block(*cells("a/x", "b/x", case="mine")), spec={"family": "model", "files": "sha256:1"})
    started, next_round = [], ServerPool.next_round

    def noted(pool: ServerPool, environments: Sequence[str]) -> None:
        started.append((pool.tenant, sorted(environments)))
        next_round(pool, environments)

    monkeypatch.setattr(ServerPool, "next_round", noted)
    models = {"sha256:1": ModelFiles.of("net.py", {"net.py": b""})}
    list(events(FakeBackend(), builtin, of_user, rounds=2, restart=1, models=models))
    identity = digest_of(models)
    first_round = [("", ["a", "b"]), (identity, ["a", "b"])]
    assert started == first_round + first_round[::-1]
