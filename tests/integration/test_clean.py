"""What `runner clean` finds and removes, by the real command line and on a real engine."""

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import docker
import pytest
from docker.errors import APIError, ImageNotFound

from runner.backends.docker.backend import DockerBackend
from runner.backends.docker.cleanup import abandoned_containers, owner, remove_leftover, unneeded_images_and_volumes
from runner.backends.docker.options import CACHE, ENVIRONMENT, OWNER, cache_volume
from runner.backends.local_channel import ProcessChannel
from runner.backends.uses import FOLDER, note_use
from runner.backends.venv import READY
from runner.core.locks import shared
from runner.core.model import Spec
from runner.session.context import IN_USE
from tests.fakes.driver import StandIn
from tests.integration.conftest import Runner, wait_for

ROOT = Path(__file__).parents[2]
BASE = "python:3.11-slim"
LOCK = ROOT / "docker/locks/numpy.txt"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own, temporary folders too, and no engine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    folder = tmp_path / "xdg" / "matrix-runner"
    for name in ("venvs/gone-0123456789ab/bin", "caches/gone-0123456789ab", "references"):
        (folder / name).mkdir(parents=True)
    (folder / "venvs" / "gone-0123456789ab" / READY).touch()
    note_use(folder, "gone-0123456789ab", tmp_path / "gone")  # a checkout that has been removed
    (use,) = (folder / FOLDER / "gone-0123456789ab").iterdir()
    os.utime(use, (0, 0))
    (folder / "references" / "a-00000000.json").write_bytes(b"x" * 2_000_000)
    dead = tmp_path / "tmp" / "matrix-runner-0dead_00"
    (dead / "tmpabcdefgh").mkdir(parents=True)
    (dead / "tmpabcdefgh" / "harness.zip").touch()
    return folder


def test_the_temporary_folder_of_a_server_that_was_killed_goes(
    runner: Runner, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(cache.parents[1] / "tmp"))
    channel = ProcessChannel(sys.executable, "cpu")
    try:
        wait_for(lambda: list(channel.folder.glob("*/harness.zip")))
        assert str(channel.folder) not in runner("clean", "--dry-run").stdout
        channel.process.kill()
        channel.process.wait()
        assert str(channel.folder) in runner("clean", "--dry-run").stdout
    finally:
        channel.close()


GOING = ("venvs/gone-0123456789ab", "caches/gone-0123456789ab", "references/a-00000000.json")


def test_a_dry_run_lists_and_a_real_one_removes_what_was_listed(runner: Runner, cache: Path) -> None:
    run = runner.folder / "reports" / "runs" / "20261120-104500-abcd"
    run.mkdir(parents=True)
    shown = runner("clean", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    *lines, total = shown.stdout.splitlines()
    assert total == "4 items would be removed, 2 MB"
    for path in (*(cache / name for name in GOING), runner.folder / "tmp" / "matrix-runner-0dead_00"):
        assert path.exists()
        assert sum(str(path) in line for line in lines) == 1
    assert "no container engine answers" in shown.stderr
    done = runner("clean")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [*lines, "4 items removed, 2 MB"]
    assert not any((cache / name).exists() for name in GOING)
    assert run.is_dir()
    assert runner("clean").stdout.splitlines() == ["nothing to remove", "0 items removed, 0 MB"]


def test_a_runner_at_work_keeps_its_environments(runner: Runner, cache: Path) -> None:
    with shared(cache / IN_USE):
        done = runner("clean", "--all")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "0 items removed, 0 MB"
    assert "another runner is using this cache" in done.stderr
    assert all((cache / name).exists() for name in GOING)


def test_a_live_server_s_folder_stays(runner: Runner, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive = runner.folder / "tmp" / "matrix-runner-0alive_0"
    alive.mkdir()
    monkeypatch.chdir(alive)
    assert runner("clean").returncode == 0
    assert alive.is_dir()
    assert not (alive.parent / "matrix-runner-0dead_00").exists()


def test_doctor_without_an_engine_takes_virtual_environments(runner: Runner, cache: Path) -> None:
    document = runner.json("doctor", "--device", "cpu", "--format", "json")
    assert (document["version"], document["ready"], document["backend"]) == (1, True, "venv")
    assert document["machine"]["engine"] is None
    assert document["machine"]["interpreters"]["3.11"]
    assert document["machine"]["cores"] <= document["machine"]["physical_cores"]
    assert document["backends"]["venv"]["environments"] == ["np-old", "np-new"]
    states = {finding["what"]: finding["state"] for finding in document["findings"]}
    assert (states["engine"], states["python 3.11"], states["with venv"]) == ("missing", "ok", "ok")
    assert not (cache / "venvs" / "np-old").exists()


def test_doctor_names_the_variable_that_hides_every_gpu(
    standin: StandIn, runner: Runner, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    assert standin.uuid
    assert runner("run").returncode == 5
    done = runner("doctor")
    assert done.returncode == 0, done.stderr
    assert "missing  gpu " in done.stdout
    assert "CUDA_VISIBLE_DEVICES is '7', and no GPU here is called so" in done.stdout
    assert f"`{runner.name} run --device cpu` takes venv and measures " in " ".join(done.stdout.split())


def test_doctor_where_nothing_can_run_ends_with_one(runner: Runner, cache: Path) -> None:
    path = runner.folder / "matrix.yaml"
    path.write_text(path.read_text().replace('python: "3.11", lock: docker/locks/numpy.txt', "image: nobody/none:1"))
    done = runner("doctor", "--device", "cpu")
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1] == f"nothing runs here: `{runner.name} run` takes venv"


@pytest.fixture
def client(docker_engine: str) -> Iterator[docker.DockerClient]:
    """The engine."""
    assert docker_engine
    engine = docker.from_env()
    try:
        engine.images.get(BASE)
    except ImageNotFound:
        engine.images.pull(BASE)
    yield engine
    engine.close()


@pytest.fixture
def name(client: docker.DockerClient) -> Iterator[str]:
    """An environment of this test's own; what is left of it on the engine goes with the test."""
    prefix = f"clean-{secrets.token_hex(4)}"
    yield prefix
    label = f"{ENVIRONMENT}={prefix}"
    for container in client.containers.list(all=True, filters={"label": label}, ignore_removed=True):
        container.remove(force=True)
    for image in client.images.list(filters={"label": label}):
        with suppress(APIError):
            client.images.remove(str(image.id), force=True)
    for volume in client.volumes.list(filters={"label": f"{CACHE}={prefix}"}):
        volume.remove(force=True)


def build(client: docker.DockerClient, name: str, tag: str) -> str:
    """Make an image with our labels and one small layer of its own; return its id."""
    container = client.containers.create(BASE, ["true"])
    try:
        labels = f"LABEL {ENVIRONMENT}={name} {OWNER}="
        made = container.commit(tag.partition(":")[0], tag.partition(":")[2], changes=[labels, f"ENV MADE={tag}"])
        return str(made.id)
    finally:
        container.remove()


@pytest.mark.docker
def test_images_and_volumes_on_the_engine(client: docker.DockerClient, name: str) -> None:
    ids = [build(client, name, f"matrix-runner/{name}:{tag}") for tag in ("current", "older")]
    for image in ids:
        client.volumes.create(cache_volume(image, "cpu"), labels={CACHE: name})
    tags: dict[str, set[str | None]] = {name: {f"matrix-runner/{name}:current"}}

    def mine() -> set[str]:
        ours = {f"matrix-runner/{name}:current", f"matrix-runner/{name}:older", *(cache_volume(i, "cpu") for i in ids)}
        return {left.name for left in unneeded_images_and_volumes(client, tags, everything=False)} & ours

    assert mine() == {f"matrix-runner/{name}:older", cache_volume(ids[1], "cpu")}
    user = client.containers.create(ids[1], ["true"], labels={ENVIRONMENT: name})
    assert mine() == set()
    user.remove()
    names = mine()
    going = [left for left in unneeded_images_and_volumes(client, tags, everything=False) if left.name in names]
    assert len(going) == 2
    for left in going:
        remove_leftover(client, left)
        remove_leftover(client, left)  # it is gone already
    assert mine() == set()
    assert [str(image.id) for image in client.images.list(f"matrix-runner/{name}")] == [ids[0]]
    assert [volume.name for volume in client.volumes.list(filters={"label": f"{CACHE}={name}"})] == [
        cache_volume(ids[0], "cpu")
    ]


@pytest.mark.docker
@pytest.mark.usefixtures("another_host")
def test_containers_of_dead_runners_on_the_engine(client: docker.DockerClient, name: str) -> None:
    host, boot, _, _ = owner().split(":")
    labels = {"dead": f"{host}:{boot}:4194305:1", "mine": owner()}
    for key, label in labels.items():
        client.containers.create(BASE, ["true"], name=f"{name}-{key}", labels={OWNER: label, ENVIRONMENT: name})
    leftovers = [left for left in abandoned_containers(client) if left.name.startswith(name)]
    assert [left.name for left in leftovers] == [f"{name}-dead"]
    remove_leftover(client, leftovers[0])
    left = client.containers.list(all=True, ignore_removed=True)
    assert [container.name for container in left if name in str(container.name)] == [f"{name}-mine"]


@pytest.mark.docker
@pytest.mark.usefixtures("client")
def test_the_names_of_built_images(tmp_path: Path) -> None:
    backend = DockerBackend(ROOT / "docker")
    spec = Spec(environment="np", framework="numpy", release="2", base=BASE, lock=LOCK)
    (tag,) = backend.tags([spec])["np"]
    assert tag is not None
    assert tag.startswith("matrix-runner/np:")
    unknown = Spec(environment="np", framework="numpy", release="2", base="nobody/none:1", lock=LOCK)
    assert backend.tags([spec, unknown])["np"] == {tag, None}
    assert backend.tags([Spec(environment="np", framework="numpy", release="2", image="x")]) == {}
