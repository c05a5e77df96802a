"""What Podman answers otherwise than Docker; answers as Podman 4.3.1 gave them."""

from typing import Any

import pytest
from docker.errors import APIError, NotFound

from runner.backends.docker import build_log, cache, channel, client, containers, options, survey
from runner.backends.docker.channel import DockerChannel
from runner.core.model import Limits

IMAGE = "sha256:" + "0123456789abcdef" * 4
FAILED = "building at STEP \"RUN echo 'exit status 3'; exit 7\": while running runtime: exit status 7\n"


class Response:
    """What the SDK keeps of an answer."""

    def __init__(self, status: int, headers: dict[str, str] | None = None) -> None:
        """Take the status and the headers."""
        self.status_code, self.ok, self.headers = status, status == 200, headers or {}


def refusal(status: int, explanation: str) -> APIError:
    return APIError("no", response=Response(status), explanation=explanation)  # type: ignore[arg-type]


class Engine:
    """An engine in memory, whose answer to ``/_ping`` has ``headers``."""

    base_url = "http+docker://localhost"
    timeout = 1.0

    def __init__(self, headers: dict[str, str] | None = None, status: int = 200) -> None:
        """Be idle yet."""
        self.api = self
        self.pong = Response(status, headers)
        self.requested: list[Any] = []
        self._version = ""
        self.closed = False

    def get(self, url: str, timeout: float) -> Response:
        """Answer a ping."""
        assert (url, timeout) == ("http+docker://localhost/_ping", 1.0)
        return self.pong

    def version(self) -> dict[str, str]:
        """Answer slowly."""
        self.requested.append("version")
        return {"ApiVersion": "1.39"}

    def close(self) -> None:
        """Be closed."""
        self.closed = True


@pytest.mark.parametrize(
    ("engine", "version", "requested"),
    [
        (Engine({"Api-Version": "1.41", "Libpod-API-Version": "4.3.1"}), "1.41", []),
        (Engine({}, status=403), "1.39", ["version"]),
    ],
)
def test_connect_asks_for_the_version_with_the_shortest_request(
    engine: Engine, version: str, requested: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docker.from_env", lambda **_options: engine)
    connected: Any = client.connect()
    assert (connected, engine._version, engine.requested, engine.closed) == (engine, version, requested, False)


def test_podman_is_known_by_a_header() -> None:
    docker: Any = Engine({"Api-Version": "1.41"})
    podman: Any = Engine({"Api-Version": "1.41", "Libpod-API-Version": "4.3.1"})
    assert (client.is_podman(docker), client.is_podman(podman)) == (False, True)
    assert [survey.engine({}, podman=each)["name"] for each in (False, True)] == ["Docker", "Podman"]


def container(device: str, *, podman: bool) -> dict[str, Any]:
    gpus = options.gpu_request({}, device, wsl=False, podman=podman)
    limits = Limits(memory=8 << 30, device=device, run="r1")
    return options.Container(
        name="n",
        image=IMAGE,
        python="python3",
        limits=limits,
        owner="o",
        gpus=gpus,
        image_volumes=("/data",),
        podman=podman,
    ).options()


def test_tmpfs_belong_to_the_user_by_a_word_of_podman_and_start_empty() -> None:
    mounts = container("cpu", podman=True)["tmpfs"]
    assert mounts == {
        "/data": "rw,exec,nosuid,nodev,size=1073741824,mode=1777,notmpcopyup",
        "/tmp": "rw,exec,nosuid,nodev,size=2147483648,mode=1777,notmpcopyup",
        "/work": "rw,exec,nosuid,nodev,size=1073741824,mode=0700,U,notmpcopyup",
    }
    assert not any("notmpcopyup" in text for text in container("cpu", podman=False)["tmpfs"].values())


def test_gpus_are_devices_with_the_names_of_cdi() -> None:
    created = container("GPU-1,GPU-2", podman=True)
    assert created["devices"] == [{"PathOnHost": "nvidia.com/gpu=GPU-1"}, {"PathOnHost": "nvidia.com/gpu=GPU-2"}]
    assert created["device_requests"] == []
    assert created["environment"]["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "devices" not in container("GPU-1", podman=False)


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (refusal(404, "Path /v1.41/distribution/python:3.9-slim/json is not supported"), ("", True)),
        (refusal(404, "Not Found"), ("", True)),
        (refusal(404, "manifest unknown"), ("manifest unknown", True)),
        (refusal(500, "Not Found"), ("Not Found", False)),
    ],
)
def test_an_engine_that_asks_no_registry_leaves_it_to_the_pull(
    error: APIError, answer: tuple[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(Engine):
        def inspect_distribution(self, _name: str) -> None:
            raise error

    monkeypatch.setattr(survey, "connect", lambda _seconds: Refusing())
    assert survey.ask("python:3.9-slim") == answer
    digest, reason = survey.digest_of("python:3.9-slim")
    assert (digest, reason == survey.NO_QUESTIONS) == ("", answer == ("", True))


def test_usage_has_familiar_names_labels_and_no_digests_of_what_was_built() -> None:
    class Used(Engine):
        def df(self) -> dict[str, Any]:
            volume = {"Name": "v", "Labels": {}, "UsageData": {"Size": 3}}
            return {"Images": [{"Id": "01", "RepoTags": ["1"]}, {"Id": "layer"}], "Volumes": [volume]}

        def images(self) -> list[dict[str, Any]]:
            names = {
                "RepoTags": ["docker.io/matrix-runner/np:1"],
                "RepoDigests": ["docker.io/matrix-runner/np@sha256:2"],
            }
            pulled = {"RepoTags": None, "RepoDigests": ["docker.io/library/x@sha256:3"]}
            return [{"Id": "sha256:01", **names}, {"Id": "sha256:02", **pulled}]

        def volumes(self) -> dict[str, Any]:
            return {"Volumes": [{"Name": "v", "Labels": {options.CACHE: "np"}}]}

    engine: Any = Used()
    assert cache.disk_usage(engine) == {
        "Images": [
            {"Id": "sha256:01", "RepoTags": ["matrix-runner/np:1"], "RepoDigests": []},
            {"Id": "sha256:02", "RepoTags": [], "RepoDigests": ["library/x@sha256:3"]},
        ],
        "Volumes": [{"Name": "v", "Labels": {options.CACHE: "np"}, "UsageData": {"Size": 3}}],
    }


@pytest.mark.parametrize(
    ("removing", "waits"),
    [
        (refusal(500, "container 1f does not exist in database: no such container"), 0),
        (refusal(500, "cannot remove container 1f: container state improper"), 1),
        (NotFound("no"), 0),
    ],
)
def test_a_container_that_is_being_removed_is_not_a_failure(removing: APIError, waits: int) -> None:
    class Removing(Engine):
        def remove_container(self, *_words: str, **_options: bool) -> None:
            raise removing

        def wait(self, name: str, **_options: Any) -> None:
            self.requested.append(name)
            raise refusal(500, "no such container")

    engine: Any = Removing()
    containers.remove_container(engine, "c")
    assert engine.requested == ["c"] * waits


def test_another_failure_to_remove_a_container_is_one() -> None:
    class Broken(Engine):
        def remove_container(self, *_words: str, **_options: bool) -> None:
            raise refusal(500, "the disk is broken")

    engine: Any = Broken()
    with pytest.raises(APIError):
        containers.remove_container(engine, "c")


@pytest.mark.parametrize(("podman", "until"), [(True, "1795701634"), (False, "1795701633.287")])
def test_events_are_asked_for_until_podman_lists_them(podman: bool, until: str) -> None:  # noqa: FBT001
    class Eventful(Engine):
        def info(self) -> dict[str, str]:
            return {"SystemTime": "2026-11-26T14:00:33.287123456Z"}

        def events(self, **query: Any) -> list[dict[str, Any]]:
            self.requested.append(query)
            return [{"Action": "die", "time": 1, "Actor": {"Attributes": {"exitCode": "137"}}}]

    opened: Any = object.__new__(DockerChannel)
    opened.name, opened._podman, opened._client = "c", podman, Eventful()
    assert opened._exit() == (137, False)
    [query] = opened._client.requested
    assert query["until"] == until
    assert set(query["filters"]["event"]) == {"oom", "die", "died"}


def test_the_state_of_a_container_that_podman_removes_is_not_running() -> None:
    class Removing(Engine):
        def inspect_container(self, _name: str) -> None:
            raise refusal(500, "container 1f does not exist in database: no such container")

    opened: Any = object.__new__(DockerChannel)
    opened.name, opened._client = "c", Removing()
    assert opened._is_running() is False
    assert channel.UNKNOWN_MEMORY.startswith(" (killed")


def test_a_folder_is_sent_in_an_archive_that_ends_where_podman_stops_reading() -> None:
    class Taking(Engine):
        def put_archive(self, _container: str, _path: str, data: bytes) -> None:
            self.requested.append(data)

    engine: Any = Taking()
    cache.create_folder(engine, "c")
    [data] = engine.requested
    assert len(data) == 3 * 512
    assert data[512:] == bytes(1024)


def test_log_of_buildah() -> None:
    assert build_log.progress_line("STEP 5/7: RUN touch /a") == "step 5/7: RUN touch /a"
    assert build_log.useful(["STEP 2/7: ARG BUILDER", "--> Using cache 2a93", "--> 2a933dddfc8", "so it is"]) == (
        "so it is",
    )
    assert build_log.reason(["hm"], FAILED) == "the step ended with exit 7"
    assert build_log.reason(["ERROR: bad thing"], FAILED) == "ERROR: bad thing"
