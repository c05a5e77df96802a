"""Images that are built once, pushed to a real registry, and pulled by their digest by the engines of two hosts."""

import hashlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from distributed import Client

from runner.backends.docker.backend import DockerBackend
from runner.backends.docker.cleanup import remove_leftover, unneeded_images_and_volumes
from runner.core.errors import InterruptedRunError, ProvisionError
from runner.core.model import Leftover, Record, Spec
from runner.store.run import Run, runs
from tests.support import image_registry
from tests.support.image_registry import CAN_DELETE, OUTSIDE, PASSWORD, READ_ONLY, Engine, Registry
from tests.support.ports import free_port
from tests.support.registry_project import LOCK, Project, engine_client, images_of, log_in, remove_images

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


@pytest.fixture(scope="module")
def base(docker_engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tar of a small image that runs NumPy."""
    assert docker_engine
    if reason := image_registry.missing():
        pytest.skip(reason)
    spec = Spec(environment="numpy", framework="numpy", release="2.*", base="python:3.11-slim", lock=LOCK)
    image = DockerBackend(ROOT / "docker").provision(spec, lambda _line: None).handle
    script, path = (ROOT / "tests/integration/data/small_image.py").read_text(), "/small.tar"
    with engine_client() as client:
        container = client.containers.create(image, ["python3", "-c", script, path], user="0", network_mode="none")
        try:
            container.start()
            assert container.wait()["StatusCode"] == 0, container.logs()
            outer = tmp_path_factory.mktemp("base") / "outer.tar"
            with outer.open("wb") as file:
                file.writelines(container.get_archive(path)[0])
        finally:
            container.remove(force=True)
    with tarfile.open(outer) as archive:
        archive.extractall(outer.parent, filter="data")
    outer.unlink()
    return outer.parent / "small.tar"


@pytest.fixture(scope="module")
def registry(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry that has the base image."""
    with image_registry.registry(tmp_path_factory.mktemp("registry"), more=CAN_DELETE) as served:
        with engine_client() as client:
            repository, changes = f"{served.address}/base", ["USER 1000:1000", "WORKDIR /work", "ENV HOME=/work"]
            client.api.import_image_from_file(str(base), repository=repository, tag="1", changes=changes)
            for message in client.api.push(repository, tag="1", stream=True, decode=True):
                assert "error" not in message, message
        yield served
        with engine_client() as client:
            client.api.remove_image(f"{repository}:1")


@pytest.fixture(scope="module")
def second(registry: Registry) -> Iterator[Engine]:
    """The engine of another host, which reaches the registry, and has the base image."""
    with image_registry.second_engine() as engine, image_registry.serving(registry, engine):
        with engine_client(engine.host) as client:
            client.images.pull(f"{registry.address}/base", "1")
        yield engine


@pytest.fixture
def project(tmp_path: Path, registry: Registry) -> Iterator[Project]:
    """A project of this test alone; its images go with it."""
    made = Project.create(tmp_path, f"np-{secrets.token_hex(4)}", registry.address)
    with engine_client() as client:  # a test may set DOCKER_HOST to another engine
        yield made
        remove_images(client, made.name)


def _runner(project: Project, *words: str, **variables: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "runner", *words],
        cwd=project.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )


def _output(process: "subprocess.Popen[str]") -> str:
    text, _ = process.communicate(timeout=180)
    assert process.returncode == 0, text
    return text


@contextmanager
def _two_workers(project: Project, second: Engine) -> Iterator[str]:
    """Give the address of a scheduler with a worker on each of two hosts, the second with an engine of its own."""
    port = free_port()
    host, address = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard"], f"127.0.0.1:{port}"
    worker = [sys.executable, "-m", "runner", "worker", f"dask://{address}", "--device", "cpu"]
    other_host = ["unshare", "--uts", "sh", "-c", 'hostname second && exec "$@"', "sh", *worker]
    commands: tuple[tuple[list[str], dict[str, str]], ...] = (
        ([sys.executable, "-m", "distributed.cli.dask_scheduler", *host], {}),
        (worker, {"XDG_CACHE_HOME": str(project.folder / "cache1")}),
        (other_host, {"XDG_CACHE_HOME": str(project.folder / "cache2"), "DOCKER_HOST": second.host}),
    )
    processes = []
    try:
        for number, (command, variables) in enumerate(commands):
            with (project.folder / f"process{number}.log").open("wb") as log:
                environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
                processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
        with Client(address, timeout=30) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(2, timeout=60)
        yield f"dask://{address}"
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _measured(project: Project, address: str) -> tuple[Run, str]:
    text = _output(_runner(project, "run", "--busy-ok", "--executor", address, "--backend", "docker"))
    return runs(project.folder / "reports")[0], text


def _digests(run: Run) -> dict[str, str]:
    """Return host -> digest of the image that its records name."""
    return {record.facts["host"]: record.facts["digest"] for record in run.records() if record.status == "ok"}


@pytest.mark.slow
def test_two_hosts_run_the_same_image_and_a_host_that_cannot_pull_is_named(
    project: Project, registry: Registry, second: Engine
) -> None:
    text = _output(_runner(project, "build", "--push", "--backend", "docker"))
    image = project.named()
    assert f"{project.name}: built and pushed in" in text
    assert f"{project.name}: {image}" in text
    assert image.startswith(f"{registry.address}/team/runner@sha256:")
    again = project.published()
    assert (again.how, again.facts["team_image"]) == ("cached", image)

    with _two_workers(project, second) as address, engine_client(second.host) as client:
        run, text = _measured(project, address)
        this = socket.gethostname()
        assert _digests(run).keys() == {this, "second"}, text
        assert len(set(_digests(run).values())) == 1
        assert run.environments()[project.name]["team_image"] == image
        assert "is not the same" not in text
        tags = [image.tags for image in images_of(client, project.name)]
        assert tags == [[]]  # it was pulled by its digest; an image that was built has a tag

        # A new image, which the second engine has never pulled: for some seconds after an image is removed, an engine
        # pulls it without the registry, whose manifest it still has.
        project.change_image()
        _output(_runner(project, "build", "--push", "--backend", "docker"))
        image = project.named()
        _forget(image)
        run, text = _measured(project, address)
        assert len(set(_digests(run).values())) == 2
        build_of_second = _digests(run)["second"][:19]
        why = f"not pulled: {registry.address} does not have {image}"
        assert f"{project.name} is not the same on all hosts: " in text
        assert f"{image.partition('@')[2][:19]} on {this}" in text
        assert f"{build_of_second} on second ({why}" in text
        facts = run.environments()[project.name]
        assert build_of_second in json.dumps([facts.get("other_builds"), facts["digest"]])
        page = (run.path / "index.html").read_text()
        assert "other builds" in page


def _forget(image: str) -> None:
    """Have the registry lose an image."""
    repository, _, digest = image.partition("@")
    host, _, name = repository.partition("/")
    _send(f"http://{host}/v2/{name}/manifests/{digest}", "DELETE")


def _send(url: str, method: str, body: bytes = b"", **headers: str) -> Mapping[str, str]:
    request = urllib.request.Request(url, body or None, headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return dict(answer.headers)


@pytest.fixture
def on_second(project: Project, second: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project whose image is pushed, on a host that has not pulled it."""
    project.published()
    monkeypatch.setenv("DOCKER_HOST", second.host)
    yield project
    with engine_client(second.host) as client:
        remove_images(client, project.name)


def test_clean_removes_a_pulled_image_that_the_project_does_not_name(on_second: Project) -> None:
    backend = on_second.backend()
    assert on_second.name in backend.survey([on_second.spec]).pulled
    pulled = backend.provision(on_second.spec, lambda _line: None)
    assert (pulled.how, pulled.facts["team_image"]) == ("pulled", on_second.named())
    survey = on_second.backend().survey([on_second.spec])
    assert on_second.name in survey.cached
    assert not survey.pulled
    image = on_second.named()

    with engine_client() as client:

        def leftovers(*, everything: bool = False) -> list[Leftover]:
            tags = on_second.backend().tags([on_second.spec])
            every = unneeded_images_and_volumes(client, tags, everything=everything)
            return [left for left in every if left.name == image]

        assert leftovers() == []
        assert [left.name for left in leftovers(everything=True)] == [image]
        on_second.name_image(f"{image.partition('@')[0]}@sha256:{'0' * 64}")
        (left,) = leftovers()
        assert left.reason == f"docker/images.toml does not name it for {on_second.name}"
        remove_leftover(client, left)
        assert images_of(client, on_second.name) == []


def test_clean_removes_all_names_of_an_image_that_was_pushed(project: Project) -> None:
    image = project.published()
    with engine_client() as client:
        details = client.api.inspect_image(image.handle)  # type: ignore[no-untyped-call]
        (tag,) = details["RepoTags"]
        assert details["RepoDigests"] == [project.named()]
        remove_leftover(client, Leftover(kind="image", name=tag, reason="", size=0))
        assert images_of(client, project.name) == []


def _other_architecture(project: Project) -> str:
    """Have the registry store the image for another architecture; return its name."""
    repository, _, digest = project.named().partition("@")
    host, _, name = repository.partition("/")
    base = f"http://{host}/v2/{name}"
    request = urllib.request.Request(f"{base}/manifests/{digest}", headers={"Accept": MANIFEST})
    with urllib.request.urlopen(request, timeout=10) as answer:
        manifest = json.load(answer)
    with urllib.request.urlopen(f"{base}/blobs/{manifest['config']['digest']}", timeout=10) as answer:
        config = json.dumps({**json.load(answer), "architecture": "riscv64"}).encode()
    config_digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
    upload = _send(f"{base}/blobs/uploads/", "POST")["Location"]
    _send(f"{upload}&digest={config_digest}", "PUT", config, **{"Content-Type": "application/octet-stream"})
    manifest["config"] |= {"digest": config_digest, "size": len(config)}
    stored = _send(f"{base}/manifests/other", "PUT", json.dumps(manifest).encode(), **{"Content-Type": MANIFEST})
    return f"{repository}@{stored['Docker-Content-Digest']}"


@pytest.mark.parametrize("case", ["unreachable", "without TLS", "login", "damaged", "architecture"])
def test_a_host_that_cannot_pull_builds_and_says_why(
    case: str, on_second: Project, second: Engine, registry: Registry, tmp_path_factory: pytest.TempPathFactory
) -> None:
    image = on_second.named()
    rest = image.partition("/")[2]
    folder = tmp_path_factory.mktemp("other")
    if case == "unreachable":
        address = f"127.0.0.1:{free_port()}"
        _builds(on_second, f"{address}/{rest}", f"{address} does not answer; check the name")
    elif case == "without TLS":
        with image_registry.registry(folder, OUTSIDE, second) as other:
            _builds(on_second, f"{other.address}/{rest}", f"{other.address} answers without TLS, which engines accept")
    elif case == "login":
        with image_registry.registry(folder, engine=second, password=True) as other:
            expected = f"{other.address} wants a login; `docker login {other.address}`"
            _builds(on_second, f"{other.address}/{rest}", expected)
    elif case == "damaged":
        digest = image.partition("sha256:")[2]
        data = registry.folder / f"images/docker/registry/v2/blobs/sha256/{digest[:2]}/{digest}/data"
        data.write_bytes(data.read_bytes().replace(b"{", b"{ ", 1))
        _builds(on_second, image, f"{registry.address} returned other bytes than {image} stands for")
    else:
        _builds(on_second, _other_architecture(on_second), "is for riscv64, and this engine is ")


def _builds(project: Project, image: str, reason: str) -> None:
    """Check that the image is built instead of pulled, and that the record says why."""
    project.name_image(image)
    made = project.backend(image.partition("@")[0]).provision(project.spec, lambda _line: None)
    assert made.how == "built"
    assert reason in str(made.facts["not_pulled"])
    assert "team_image" not in made.facts


def test_a_registry_with_a_password_takes_images_of_whoever_is_logged_in(
    project: Project, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(project.folder / "configuration"))
    with image_registry.registry(tmp_path_factory.mktemp("other"), password=True) as other:
        repository = f"{other.address}/team/runner"
        for password in (None, "wrong"):
            log_in(project, other.address, password)
            with pytest.raises(ProvisionError) as raised:
                project.published(repository)
            assert raised.value.code == "image-push"
            assert str(raised.value).startswith(f"error: {other.address} wants a login\nhint: `docker login")
            with engine_client() as client:
                assert images_of(client, project.name) == []  # nothing was built in vain
        log_in(project, other.address, PASSWORD)
        made = project.published(repository)
    assert made.facts["team_image"] == project.named()
    assert made.how == "built and pushed"
    with engine_client() as client:
        known = [dict(made.facts), project.named(), images_of(client, project.name)[0].attrs]
    assert PASSWORD not in json.dumps(known)


def test_a_registry_that_denies_a_push_is_a_sentence(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    served = image_registry.registry(tmp_path_factory.mktemp("other"), more=READ_ONLY)
    with served as other, pytest.raises(ProvisionError) as raised:
        project.published(f"{other.address}/team/runner")
    assert raised.value.code == "image-push"
    assert f"{other.address} denies the access to {other.address}/team/runner:{project.name}-" in str(raised.value)


def test_an_interrupted_push_leaves_no_name_and_is_repeated(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    backend, ended = project.backend(), []
    with image_registry.registry(tmp_path_factory.mktemp("other")) as other:
        repository = f"{other.address}/team/runner"
        backend.publish_to(repository)
        pushing = threading.Event()

        def say(line: str) -> None:
            if line.startswith("pushing ") and not pushing.is_set():
                os.kill(other.pid, signal.SIGSTOP)
                pushing.set()

        def provision() -> None:
            try:
                backend.provision(project.spec, say)
            except InterruptedRunError as error:
                ended.append(error)

        thread = threading.Thread(target=provision)
        thread.start()
        assert pushing.wait(60)
        backend.cancel()
        thread.join(60)
        assert len(ended) == 1
        os.kill(other.pid, signal.SIGCONT)
        with engine_client() as client:
            tags = [tag for image in images_of(client, project.name) for tag in image.tags]
        assert len(tags) == 1
        assert tags[0].startswith(f"matrix-runner/{project.name}:")
        assert project.published(repository).how == "pushed"


def _users(folder: Path, registry: Registry) -> tuple[Project, Project]:
    """Return two checkouts of one project; each has a cache of its own, as those of two users have."""
    name = f"np-{secrets.token_hex(4)}"
    for user in ("ann", "bob"):
        (folder / user).mkdir()
    ann, bob = (Project.create(folder / user, name, registry.address) for user in ("ann", "bob"))
    return ann, bob


@pytest.mark.slow
def test_two_users_of_an_engine_remove_nothing_of_each_other(
    tmp_path: Path, registry: Registry, second: Engine
) -> None:
    """Days in small: runs of both, and cleaning of both, also while the other one measures."""
    ann, bob = _users(tmp_path, registry)

    def start(user: Project, *words: str) -> "subprocess.Popen[str]":
        variables = {"DOCKER_HOST": second.host, "XDG_CACHE_HOME": str(user.folder / "cache")}
        return _runner(user, *words, **variables)

    def do(user: Project, *words: str) -> str:
        return _output(start(user, *words))

    def measured(user: Project) -> list[Record]:
        return [*runs(user.folder / "reports")[0].records()]

    measure = ("run", "--backend", "docker", "--busy-ok")
    with engine_client(second.host) as client:

        def ids() -> set[str]:
            return {str(image.id) for image in images_of(client, ann.name)}

        for night in range(2):
            assert "built in" in (text := do(ann, *measure)) or night, text
            assert f"{bob.name}: ready" in do(bob, *measure)
            do(ann, "clean")
            do(bob, "clean")
        (image,) = ids()
        matrix = ann.folder / "matrix.yaml"
        matrix.write_text(matrix.read_text().replace(f"  {ann.name}:", "  other:"))
        do(ann, "clean")
        assert ids() == {image}, "ann has removed what bob uses"
        text = do(ann, "clean", "--all")
        assert ids() == {image}, "ann was not asked"
        assert f":{bob.folder}" in text
        assert "--others removes them, too" in text

        run = start(bob, *measure, "--rounds", "999")  # until it is interrupted
        _until(lambda: client.containers.list(filters={"label": "io.matrix-runner.run"}, ignore_removed=True))
        do(ann, "clean", "--all")
        removing = start(ann, "clean", "--all", "--others")
        text, _ = removing.communicate(timeout=180)
        assert ids() == {image}, text
        known = len(measured(bob))
        _until(lambda: len(measured(bob)) > known)
        run.send_signal(signal.SIGINT)
        text, _ = run.communicate(timeout=180)
        assert run.returncode == 130, text
        assert {(record.cell.environment, record.status) for record in measured(bob)} == {(bob.name, "ok")}
        assert not client.containers.list(all=True, filters={"label": "io.matrix-runner.owner"})

        assert f"{ann.name}" in do(ann, "clean", "--all", "--others")
        assert not ids()
        assert not client.volumes.list(filters={"label": f"io.matrix-runner.use={image.removeprefix('sha256:')[:12]}"})
        assert f"{bob.name}: built in" in do(bob, *measure)
        remove_images(client, bob.name)


def _until(condition: Callable[[], object], seconds: float = 180.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.1)
