"""An engine's error about one image fails that environment alone; an engine that is silent ends the run."""

import json
import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from runner.backends.docker.backend import DockerBackend
from runner.core.errors import EngineError, ProvisionError
from runner.core.model import Spec

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "docker/locks/numpy.txt"
GOOD = Spec(environment="good", framework="numpy", release="1", image="good:1")
GOOD_ID = "sha256:" + "1" * 64
BASE = "python:3.11-slim"


def image_spec(name: str) -> Spec:
    return Spec(environment="bad", framework="numpy", release="1", image=name)


class Answers(BaseHTTPRequestHandler):
    """Has the image ``good:1``, and answers with ``status`` to all questions about others."""

    status = 500
    paths: list[str]

    def do_GET(self) -> None:
        """Answer."""
        path = re.sub(r"^/v[0-9.]+", "", self.path)
        self.paths.append(path)
        if path == "/version":
            self.reply(200, {"Version": "99.0", "ApiVersion": "1.41", "MinAPIVersion": "1.12"})
        elif path == "/info":
            self.reply(200, {"DockerRootDir": "/nowhere"})
        elif path in {"/images/good:1/json", f"/images/{GOOD_ID}/json"}:
            self.reply(200, {"Id": GOOD_ID, "RepoTags": ["good:1"], "Size": 1})
        elif path.startswith(("/containers/json", "/images/json")):
            self.reply(200, [])
        else:
            self.reply(self.status, {"message": "no\x1b[2J way"})

    def do_POST(self) -> None:
        """Refuse."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.reply(self.status, {"message": "no\x1b[2J way"})

    def reply(self, status: int, document: Any) -> None:
        """Answer with JSON."""
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Answers]]:
    """An engine of this test's own; its class says how it answers."""

    class Answering(Answers):
        paths: list[str] = []  # noqa: RUF012  of this engine alone

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.server_address[1]}")
    monkeypatch.delenv("DOCKER_TLS_VERIFY", raising=False)
    yield Answering
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 429, 500, 503])
def test_status_about_one_image_is_its_own(engine: type[Answers], status: int) -> None:
    engine.status = status
    backend = DockerBackend(ROOT / "docker")
    based = Spec(environment="based", framework="numpy", release="1", base="bad:2", lock=LOCK)
    survey = backend.survey([image_spec("bad:1"), GOOD, based])
    assert survey.cached == {"good"}
    assert {name: skip.code for name, skip in survey.skips.items()} == dict.fromkeys(
        ("bad", "based"), "image-unavailable"
    )
    for skip in survey.skips.values():
        assert "bad:" in skip.reason
        assert skip.reason.isprintable()
    assert backend.provision(GOOD, lambda _line: None).handle == GOOD_ID
    for spec in (image_spec("bad:1"), based):
        with pytest.raises(ProvisionError) as raised:
            backend.provision(spec, lambda _line: None)
        assert raised.value.code == "image-pull"
        assert str(raised.value).replace("\n", "").isprintable()
    assert backend.restore("bad", "sha256:" + "2" * 64) is None
    assert backend.tags([based]) == {"based": {None}}


def test_name_that_climbs_out_of_the_images_is_not_sent(engine: type[Answers]) -> None:
    survey = DockerBackend(ROOT / "docker").survey([image_spec("x/../../containers/some"), GOOD])
    assert (list(survey.skips), list(survey.cached)) == (["bad"], ["good"])
    assert not [path for path in engine.paths if "containers" in path]


def test_silent_engine_is_an_engine_error(engine: type[Answers], monkeypatch: pytest.MonkeyPatch) -> None:
    backend = DockerBackend(ROOT / "docker")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{closed.getsockname()[1]}")
    for ask in (lambda: backend.survey([GOOD]), lambda: backend.provision(GOOD, lambda _line: None)):
        with pytest.raises(EngineError) as raised:
            ask()
        assert raised.value.exit_code == 4


BAD_NAMES = (
    *("x y", "SEC:latest", "localhost:1/no/such@sha256:00", "x/../../containers/some", "x\nRUN id", "--help"),
    *("x AS y", "localhost:1/no/such:" + "t" * 200, "localhost:1/" + "n" * 300),
)


@pytest.mark.docker
@pytest.mark.parametrize("name", BAD_NAMES)
def test_real_engine_fails_the_environment_of_a_bad_name_alone(name: str) -> None:
    backend = DockerBackend(ROOT / "docker")
    good = Spec(environment="good", framework="numpy", release="1", image=BASE)
    based = Spec(environment="based", framework="numpy", release="1", base=name, lock=LOCK)
    survey = backend.survey([image_spec(name), good, based])
    assert survey.cached == {"good"}
    assert {skip.code for skip in survey.skips.values()} == {"image-unavailable"}
    assert set(survey.skips) == {"bad", "based"}
    for spec in (image_spec(name), based):
        with pytest.raises(ProvisionError):
            backend.provision(spec, lambda _line: None)
    assert backend.provision(good, pytest.fail).cached


@pytest.mark.docker
@pytest.mark.parametrize("environment", ["np-1.", "a-..", "x" * 300])
def test_real_engine_fails_an_environment_whose_id_is_no_repository(environment: str) -> None:
    backend = DockerBackend(ROOT / "docker")
    spec = Spec(environment=environment, framework="numpy", release="1", base=BASE, lock=LOCK)
    assert set(backend.survey([spec]).skips) == {environment}
    with pytest.raises(ProvisionError):
        backend.provision(spec, lambda _line: None)
