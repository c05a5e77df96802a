"""What may go and what stays; nothing that a runner uses, nothing that is somebody else's, and never a run."""

import os
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runner.backends import interpreters
from runner.backends.docker.cleanup import abandoned_containers, owner, unneeded_images_and_volumes
from runner.backends.docker.options import CACHE, CHECKOUT, ENVIRONMENT, OWNER, cache_volume
from runner.backends.removal import remove
from runner.backends.uses import FOLDER, RECENT_SECONDS, UNKNOWN, Need, Use, label, note_use
from runner.backends.venv import READY, VenvBackend
from runner.core.errors import EngineError, RunnerError
from runner.core.locks import shared, try_exclusive
from runner.core.model import Leftover
from runner.core.unfinished import PROCESS, hidden
from runner.machine import clean
from runner.matrix import load
from runner.measure.references import code_hash
from runner.nights.anchors_file import CellAnchor, write_anchors
from runner.plan.specs import specs
from runner.session.context import IN_USE, cache_in_use
from tests.support.fake_runs import cell, make, rounds

MATRIX = """\
version: 1
workloads: {rnn-step: {}}
environments:
  np: {framework: numpy, release: "2.0", python: "3.11", lock: np.txt}
  torch: {framework: torch, release: "2.0", image: x}
"""


@pytest.fixture(autouse=True)
def _nothing_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No engine, one interpreter, and temporary folders of this test's own."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    (tmp_path / "np.txt").write_text("numpy==2.0 --hash=sha256:00\n")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    monkeypatch.setattr(interpreters, "find", lambda version: Path(f"/python{version}"))
    monkeypatch.setattr(clean, "_on_engine", lambda *_args, **_options: [])


def current(folder: Path) -> Path:
    """Return where the venv of the matrix's environment lies."""
    specs_of_cpu, _ = specs(load(folder / "matrix.yaml"), ["np"], "cpu", folder)
    return VenvBackend(folder / "cache").home(specs_of_cpu[0])


def made(home: Path, *, ready: bool = True, size: int = 100, noted: bool = True) -> Path:
    """Make a venv that this checkout has used the day before yesterday; an older version noted no use."""
    (home / "bin").mkdir(parents=True)
    cache = home.parents[1]
    if noted:
        note_use(cache, home.name, cache.parent)
        then = time.time() - 2 * RECENT_SECONDS
        for use in (cache / FOLDER / home.name).iterdir():
            os.utime(use, (then, then))
    (home / "bin" / "python").write_bytes(b"x" * size)
    if ready:
        (home / READY).touch()
    return home


def leftovers_by_name(folder: Path, *, everything: bool = False) -> dict[str, Leftover]:
    """Return path below ``folder`` -> what may go."""
    with clean.leftovers(folder / "matrix.yaml", folder / "cache", folder / "reports", everything=everything) as it:
        return {str(Path(left.name).relative_to(folder)): left for left in it.leftovers}


def test_an_empty_cache_has_nothing(tmp_path: Path) -> None:
    assert leftovers_by_name(tmp_path) == {}
    assert clean.listing(()) == "nothing to remove"


def test_venvs_that_nothing_names_and_half_made_ones_go_and_the_others_stay(tmp_path: Path) -> None:
    venvs = tmp_path / "cache" / "venvs"
    made(current(tmp_path))
    made(venvs / "np-0123456789ab")
    made(venvs / "gone-0123456789ab", size=5)
    made(venvs / "np-aaaaaaaaaaaa", ready=False)
    assert {name.removeprefix("cache/venvs/"): left.reason for name, left in leftovers_by_name(tmp_path).items()} == {
        "np-0123456789ab": "the lock or the interpreter of np has changed",
        "gone-0123456789ab": "the matrix has no environment gone",
        "np-aaaaaaaaaaaa": "incomplete",
    }
    assert leftovers_by_name(tmp_path)["cache/venvs/gone-0123456789ab"].size == 5


def test_a_changed_lock_lets_the_old_venv_go(tmp_path: Path) -> None:
    old = made(current(tmp_path))
    assert leftovers_by_name(tmp_path) == {}
    (tmp_path / "np.txt").write_text("numpy==2.1 --hash=sha256:11\n")
    assert list(leftovers_by_name(tmp_path)) == [str(old.relative_to(tmp_path))]


def test_the_environment_of_an_anchor_stays_unless_all_may_go(tmp_path: Path) -> None:
    for digits in ("ab", "cd"):
        made(tmp_path / "cache" / "venvs" / f"torch-2.x-{6 * digits}")
    run = make(tmp_path / "reports", rounds(cell("torch-2.x"), [1.0, 1.0]))
    run.note("begun", digests={"torch-2.x": "sha256:" + 32 * "ab"})
    assert len(leftovers_by_name(tmp_path)) == 2
    write_anchors(tmp_path / "reports", "venv EPYC", {cell("torch-2.x").id: CellAnchor(run.id)})
    assert list(leftovers_by_name(tmp_path)) == ["cache/venvs/torch-2.x-cdcdcdcdcdcd"]
    assert len(leftovers_by_name(tmp_path, everything=True)) == 2


def test_a_venv_of_another_checkout_stays_and_with_all_it_is_named(tmp_path: Path) -> None:
    home = made(tmp_path / "cache" / "venvs" / "gone-0123456789ab")
    (tmp_path / "cache" / "caches" / home.name).mkdir(parents=True)
    made(tmp_path / "cache" / "venvs" / "gone-ffffffffffff")
    (tmp_path / "other").mkdir()
    note_use(tmp_path / "cache", home.name, tmp_path / "other")
    assert list(leftovers_by_name(tmp_path)) == ["cache/venvs/gone-ffffffffffff"]
    others = (label(tmp_path / "other"),)
    assert {name: left.others for name, left in leftovers_by_name(tmp_path, everything=True).items()} == {
        "cache/venvs/gone-ffffffffffff": (),
        "cache/venvs/gone-0123456789ab": others,
        "cache/caches/gone-0123456789ab": others,
    }


def test_a_venv_of_an_older_version_is_neither_mine_nor_forgotten(tmp_path: Path) -> None:
    home = made(tmp_path / "cache" / "venvs" / "gone-0123456789ab", size=2_000_000, noted=False)
    caches = tmp_path / "cache" / "caches" / home.name
    caches.mkdir(parents=True)
    made(current(tmp_path), noted=False)  # needed, so that it stays without a word
    with clean.leftovers(tmp_path / "matrix.yaml", tmp_path / "cache", tmp_path / "reports", everything=False) as it:
        assert it.of_this_checkout == ()
        assert {left.name for left in it.of_others} == {str(home), str(caches)}
        assert clean.of_others(it.of_others) == f"2 items, 2 MB, of {UNKNOWN}"
        assert all(line.endswith("; it names no checkout") for line in clean.listing(it.of_others).splitlines())
    note_use(tmp_path / "cache", home.name, tmp_path)
    assert leftovers_by_name(tmp_path) == {}  # it was used today


def test_what_others_need_is_listed_last_with_whose_it_is() -> None:
    theirs = Leftover(kind="image", name="x:1", reason="--all; x can be built again", size=2_000_000, others=("h:/o",))
    mine = Leftover(kind="venv", name="/c/np-1", reason="incomplete", size=1_000_000)
    survey = clean.CleanupSurvey((theirs, mine), ())
    assert (survey.of_this_checkout, survey.of_others) == ((mine,), (theirs,))
    assert clean.listing((*survey.of_this_checkout, *survey.of_others)).splitlines() == [
        "1 MB  venv   /c/np-1  incomplete",
        "2 MB  image  x:1      --all; x can be built again; h:/o needs it, too",
    ]
    assert clean.of_others(survey.of_others) == "1 item, 2 MB, of h:/o"
    many = [replace(theirs, others=(f"h:/{number}",)) for number in range(5)]
    assert clean.of_others(many) == "5 items, 10 MB, of h:/0, h:/1, h:/2 and 2 more"


def test_what_killed_commands_left_in_the_reports_goes_and_runs_stay(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    run = make(reports, rounds(cell(), [1.0, 1.0]))
    for folder in (reports, reports / "runs", run.path, run.path / "records", reports / "imports" / "runs"):
        folder.mkdir(parents=True, exist_ok=True)
        boot = hidden(folder / "x").name.split("-")[0]
        (folder / f"{boot}-4194305-1-0a0b0c0d.tmp").write_bytes(b"half")
        hidden(folder / "x").touch()  # of this process, which is still at it
    left = leftovers_by_name(tmp_path)
    assert {Path(name).parent for name in left} == {
        Path("reports"),
        Path("reports/runs"),
        Path("reports/imports/runs"),
        *(path.relative_to(tmp_path) for path in (run.path, run.path / "records")),
    }
    assert {each.reason for each in left.values()} == {"unfinished, and its process has ended"}
    assert remove([*left.values()]) == ()
    assert leftovers_by_name(tmp_path) == {}
    assert run.journal().entries


def test_a_venv_that_somebody_makes_just_now_stays(tmp_path: Path) -> None:
    home = made(tmp_path / "cache" / "venvs" / "np-aaaaaaaaaaaa", ready=False)
    with try_exclusive(home.with_name(f"{home.name}.lock")) as held:
        assert held
        assert leftovers_by_name(tmp_path) == {}
    assert len(leftovers_by_name(tmp_path)) == 1


def test_compiler_caches_go_with_their_venv_and_the_host_s_stay(tmp_path: Path) -> None:
    caches = tmp_path / "cache" / "caches"
    for name in (made(current(tmp_path)).name, "np-0123456789ab", "host"):
        (caches / name).mkdir(parents=True)
    assert list(leftovers_by_name(tmp_path)) == ["cache/caches/np-0123456789ab"]
    everything = leftovers_by_name(tmp_path, everything=True)
    assert {name.partition("caches/")[2] for name in everything} - {""} == {
        current(tmp_path).name,
        "np-0123456789ab",
        "host",
    }


def test_references_of_older_code_go(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "references"
    folder.mkdir(parents=True)
    for name in (f"a-{code_hash()}.json", "a-00000000.json", f".a-{code_hash()}.json.0011.tmp"):
        (folder / name).touch()
    assert {Path(name).name for name in leftovers_by_name(tmp_path)} == {
        "a-00000000.json",
        f".a-{code_hash()}.json.0011.tmp",
    }
    assert len(leftovers_by_name(tmp_path, everything=True)) == 3


def test_temporary_folders_go_unless_a_process_works_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_servers = ("matrix-runner-0dead_00", "matrix-runner-0alive_0")
    for name in (*of_servers, "matrix-runner-backup", "matrix-runner-by-hand-1", "others"):
        (tmp_path / "tmp" / name).mkdir(parents=True)
    for name in (*of_servers, "matrix-runner-by-hand-1"):  # a backup has no harness, and no made-up name has a hyphen
        (tmp_path / "tmp" / name / "tmpabcdefgh").mkdir()
        (tmp_path / "tmp" / name / "tmpabcdefgh" / "harness.zip").touch()
    below = tmp_path / "tmp" / of_servers[1] / "below"
    below.mkdir()
    (tmp_path / "tmp" / "matrix-runner-0file_00").touch()
    (tmp_path / "tmp" / "matrix-runner-0link_00").symlink_to(below.parent)
    monkeypatch.chdir(below)
    assert list(leftovers_by_name(tmp_path)) == [f"tmp/{of_servers[0]}"]


def test_the_temporary_folder_of_a_worker_that_was_killed_goes(tmp_path: Path) -> None:
    host, boot, pid, started = owner().split(":")
    for name, text in (("0dead_00", f"{host}:{boot}:4194305:1"), ("0alive_0", f"{host}:{boot}:{pid}:{started}")):
        folder = tmp_path / "tmp" / f"matrix-runner-{name}"
        (folder / "project").mkdir(parents=True)
        (folder / PROCESS).write_text(text)
    left = leftovers_by_name(tmp_path)
    assert {name: each.reason for name, each in left.items()} == {"tmp/matrix-runner-0dead_00": "its process has ended"}


def test_all_takes_what_the_matrix_needs_too(tmp_path: Path) -> None:
    home = made(current(tmp_path))
    assert (
        leftovers_by_name(tmp_path, everything=True)[str(home.relative_to(tmp_path))].reason
        == "--all; np can be built again"
    )


def test_nothing_goes_while_a_runner_is_cache_in_use(tmp_path: Path) -> None:
    made(tmp_path / "cache" / "venvs" / "gone-0123456789ab")
    lock = tmp_path / "cache" / IN_USE
    looked = clean.leftovers(tmp_path / "matrix.yaml", tmp_path / "cache", tmp_path / "reports", everything=True)
    with shared(lock), shared(lock), looked as it:
        assert it == clean.CleanupSurvey((), (clean.IN_USE_NOTE,))
    assert len(leftovers_by_name(tmp_path)) == 1


def test_a_runner_cache_in_use_is_one_that_clean_sees(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    with cache_in_use(pytest.fail, environ), try_exclusive(tmp_path / "matrix-runner" / IN_USE) as alone:
        assert not alone


def test_no_runner_begins_before_the_cleaning_has_ended(tmp_path: Path) -> None:
    looked = clean.leftovers(tmp_path / "matrix.yaml", tmp_path / "cache", tmp_path / "reports", everything=False)
    with looked, try_exclusive(tmp_path / "cache" / IN_USE) as alone:
        assert not alone
    with try_exclusive(tmp_path / "cache" / IN_USE) as alone:
        assert alone


def test_without_an_engine_the_rest_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_args: object, **_options: object) -> list[Leftover]:
        raise EngineError("none")

    monkeypatch.setattr(clean, "_on_engine", silent)
    made(tmp_path / "cache" / "venvs" / "gone-0123456789ab")
    with clean.leftovers(tmp_path / "matrix.yaml", tmp_path / "cache", tmp_path / "reports", everything=False) as it:
        assert (len(it.leftovers), it.notes) == (1, (clean.NO_ENGINE,))


def test_what_is_removed_is_gone_with_its_lock_and_nothing_beside_it_is(tmp_path: Path) -> None:
    home = made(tmp_path / "cache" / "venvs" / "gone-0123456789ab", size=2_000_000)
    lock = home.with_name(f"{home.name}.lock")
    lock.touch()
    outside = tmp_path / "outside"
    outside.mkdir()
    (home / "link").symlink_to(outside)
    stays = made(current(tmp_path))
    run = tmp_path / "reports" / "runs" / "20261120-104500-abcd"
    run.mkdir(parents=True)
    with clean.leftovers(tmp_path / "matrix.yaml", tmp_path / "cache", tmp_path / "reports", everything=False) as it:
        assert clean.summary(it.of_this_checkout, (), dry=True) == "1 item would be removed, 2 MB"
        assert remove(it.leftovers) == ()
        assert clean.summary(it.of_this_checkout, (), dry=False) == "1 item removed, 2 MB"
    assert not home.exists()
    assert not lock.exists()
    assert outside.is_dir()
    assert run.is_dir()
    assert (stays / READY).exists()


def test_what_cannot_be_removed_is_told_and_the_rest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = tmp_path / "bad", tmp_path / "good"
    for path in (bad, good):
        path.touch()
    unlink = Path.unlink

    def refuse(path: Path, **options: bool) -> None:
        if path == bad:
            raise PermissionError(13, "not yours")
        unlink(path, **options)

    monkeypatch.setattr(Path, "unlink", refuse)
    left = [Leftover(kind="reference", name=str(path), reason="r", size=1_000_000) for path in (bad, good)]
    stay = remove(left)
    assert [(leftover.name, "not yours" in why) for leftover, why in stay] == [(str(bad), True)]
    assert not good.exists()
    assert clean.summary(left, stay, dry=False) == "1 item removed, 1 MB"


def test_the_listing_shows_size_kind_name_and_reason() -> None:
    lines = clean.listing(
        [
            Leftover(kind="venv", name="/c/venvs/np-1", reason="incomplete", size=1_500_000_000),
            Leftover(kind="reference", name="/c/r.json", reason="it was computed by older code", size=3_000_000),
        ]
    ).splitlines()
    assert lines == [
        "1.5 GB  venv       /c/venvs/np-1  incomplete",
        "  3 MB  reference  /c/r.json      it was computed by older code",
    ]


def test_a_cache_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    with pytest.raises(RunnerError, match="cannot create the lock"):
        leftovers_by_name(tmp_path)


class Engine:
    """An engine that holds what it is told, as the SDK's low-level calls give it."""

    def __init__(
        self,
        images: Iterable[Mapping[str, Any]] = (),
        volumes: Iterable[Mapping[str, Any]] = (),
        containers: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """Take what it holds."""
        self.disk = {"Images": list(images), "Volumes": list(volumes)}
        self.held = list(containers)
        self.api = self

    def df(self) -> dict[str, Any]:
        """Return images and volumes."""
        return self.disk

    def containers(self, filters: Mapping[str, str] | None = None, **_options: object) -> list[Mapping[str, Any]]:
        """Return containers, those with a label where one is asked for."""
        label = (filters or {}).get("label", "")
        return [container for container in self.held if not label or label in (container["Labels"] or {})]


def image(number: int, tag: str | None, environment: str | None = None, owned: str = "") -> dict[str, Any]:
    labels = {} if environment is None else {ENVIRONMENT: environment, OWNER: owned}
    tags = [tag] if tag else ["<none>:<none>"]
    return {"Id": f"sha256:{number:064x}", "Labels": labels or None, "RepoTags": tags, "Size": 900, "SharedSize": 600}


def gone() -> str:
    """Return the label of a runner of this host that is no more."""
    host, boot, _, _ = owner().split(":")
    return f"{host}:{boot}:4194305:1"


def reasons(engine: Engine, tags: Mapping[str, set[str | None]], *, everything: bool = False) -> dict[str, str]:
    return {left.name: left.reason for left in unneeded_images_and_volumes(engine, tags, everything=everything)}  # type: ignore[arg-type]


def test_images_of_other_locks_and_other_environments_go() -> None:
    engine = Engine(
        [
            image(1, "matrix-runner/np:current", "np"),
            image(2, "matrix-runner/np:older", "np"),
            image(3, "matrix-runner/gone:abc", "gone"),
            image(4, "python:3.11"),
            image(5, None, "np"),
        ]
    )
    leftovers_by_name = unneeded_images_and_volumes(engine, {"np": {"matrix-runner/np:current"}}, everything=False)  # type: ignore[arg-type]
    changed = "the lock, the Dockerfile or the base image of np has changed"
    assert {left.name: left.reason for left in leftovers_by_name} == {
        "matrix-runner/np:older": changed,
        "matrix-runner/gone:abc": "the matrix builds no environment gone",
        f"sha256:{5:064x}": changed,
    }
    assert {left.size for left in leftovers_by_name} == {300}


def test_the_image_of_an_anchor_stays() -> None:
    engine: Any = Engine([image(1, None, "np"), image(2, None, "np")])
    removable = unneeded_images_and_volumes(engine, {"np": set()}, {f"sha256:{1:064x}"}, everything=False)
    assert [left.name for left in removable] == [f"sha256:{2:064x}"]


def test_images_whose_base_is_not_here_cannot_be_told_and_stay() -> None:
    assert reasons(Engine([image(1, "matrix-runner/np:abc", "np")]), {"np": {None}}) == {}


def test_what_a_container_uses_or_a_builder_makes_stays() -> None:
    mine = {OWNER: owner()}
    engine = Engine(
        [image(1, "matrix-runner/gone:a", "gone"), image(2, None, "np", owner()), image(3, None, "np", gone())],
        containers=[{"ImageID": f"sha256:{1:064x}", "Labels": mine, "Names": ["/one"], "Id": "1"}],
    )
    assert reasons(engine, {}, everything=True) == {
        f"sha256:{3:064x}": "unfinished, and the process that built it no longer exists"
    }


def test_an_image_that_another_checkout_needs_stays_unless_all_may_go() -> None:
    def need(_uses: Collection[Use], built_by: str) -> Need:
        return Need(others=("other",)) if built_by == "other" else Need()

    images = [image(number, f"matrix-runner/gone:{number}", "gone") for number in (1, 2)]
    images[0]["Labels"][CHECKOUT] = "other"
    engine: Any = Engine(images)
    for everything, going in ((False, ["2"]), (True, ["1", "2"])):
        left = unneeded_images_and_volumes(engine, {}, everything=everything, need=need)
        assert [each.name for each in left] == [f"matrix-runner/gone:{number}" for number in going]


def test_an_image_that_somebody_named_stays() -> None:
    assert reasons(Engine([image(1, "mine/keep:1", "gone")]), {}, everything=True) == {}


def test_all_takes_every_image_of_ours_and_no_other() -> None:
    engine = Engine([image(1, "matrix-runner/np:current", "np"), image(4, "python:3.11")])
    assert list(reasons(engine, {"np": {"matrix-runner/np:current"}}, everything=True)) == ["matrix-runner/np:current"]


def test_volumes_go_with_their_image() -> None:
    ids = {name: f"sha256:{letter * 64}" for name, letter in (("stays", "a"), ("goes", "b"), ("gone", "c"))}
    images = [
        {**image(1, "matrix-runner/np:current", "np"), "Id": ids["stays"]},
        {**image(2, "matrix-runner/np:older", "np"), "Id": ids["goes"]},
    ]
    usage = {"RefCount": 0, "Size": 50}
    volumes: list[dict[str, Any]] = [
        {"Name": cache_volume(leftovers_by_name, "cpu"), "Labels": {CACHE: "np"}, "UsageData": usage}
        for leftovers_by_name in ids.values()
    ]
    volumes += [{"Name": cache_volume(ids["gone"], "GPU-1"), "Labels": {CACHE: "x"}, "UsageData": {"RefCount": 1}}]
    volumes += [{"Name": cache_volume(ids["gone"], "cuda"), "Labels": None, "UsageData": usage}]
    engine = Engine(images, volumes)
    tags: dict[str, set[str | None]] = {"np": {"matrix-runner/np:current"}}
    names = {name for name in reasons(engine, tags) if "cache" in name}
    assert names == {cache_volume(ids["goes"], "cpu"), cache_volume(ids["gone"], "cpu")}
    everything = {name for name in reasons(engine, tags, everything=True) if "cache" in name}
    assert everything == names | {cache_volume(ids["stays"], "cpu")}


def test_volumes_of_users_networks_go_after_a_week() -> None:
    ids = {"stays": f"sha256:{'a' * 64}"}
    days = {"new": 1, "old": 8, "unknown": None}
    volumes: list[dict[str, Any]] = [
        {
            "Name": cache_volume(ids["stays"], "cpu", name),
            "Labels": {CACHE: "np"},
            "UsageData": {"RefCount": 0, "Size": 50},
            "CreatedAt": None if age is None else (datetime.now(UTC) - timedelta(days=age)).isoformat(),
        }
        for name, age in days.items()
    ]
    old = datetime.now(UTC) - timedelta(days=100)
    volumes.append({**volumes[0], "Name": cache_volume(ids["stays"], "cpu"), "CreatedAt": old.isoformat()})
    engine = Engine([{**image(1, "matrix-runner/np:current", "np"), "Id": ids["stays"]}], volumes)
    (name,) = reasons(engine, {"np": {"matrix-runner/np:current"}})
    assert name == cache_volume(ids["stays"], "cpu", "old")


def test_containers_of_dead_runners_alone() -> None:
    held = [
        {"Labels": {OWNER: label}, "Names": [f"/{name}"], "Id": name, "ImageID": "i", "SizeRw": 5}
        for name, label in (("mine", owner()), ("dead", gone()), ("elsewhere", gone().replace(":", "x:", 1)))
    ]
    engine = Engine(containers=[*held, {"Labels": None, "Names": ["/other"], "Id": "o", "ImageID": "i"}])
    abandoned = abandoned_containers(engine)  # type: ignore[arg-type]
    assert [(left.kind, left.name, left.size) for left in abandoned] == [("container", "dead", 5)]
