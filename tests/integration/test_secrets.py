"""Nothing that a run writes, prints or starts has the secrets of its user: variables, proxies, registries, indexes.

Each secret contains MARK, and each user name USER, so that one search finds all of them. No other process of tests has
them: the search goes through the command lines of all processes of the machine. The runner may pass what a
tool needs on to that tool, in its environment or a file; never in a command line, which every user of a machine can
read.
"""

import base64
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runner.backends.docker.options import RUN
from tests.integration.conftest import Runner, children, wait_for

SESSION = secrets.token_hex(4)
MARK = f"n0bodymayread{SESSION}"
USER = f"alicewhonobodyknows{SESSION}"
PROXY = f"http://{USER}:{MARK}-proxy@127.0.0.1:9"
INDEX = f"http://{USER}:{MARK}-index@127.0.0.1:9/simple"
VARIABLES = {
    "AWS_SECRET_ACCESS_KEY": f"{MARK}-aws",
    "HF_TOKEN": f"{MARK}-token",
    "DATABASE_URL": f"postgres://{USER}:{MARK}-database@db.example/results",
    "MATRIX_RUNNER_ALERTS": f"json://{USER}:{MARK}-alerts@127.0.0.1:9/hook",
    "HTTP_PROXY": PROXY,
    "HTTPS_PROXY": PROXY,
    "http_proxy": PROXY,
    "https_proxy": PROXY,
    "PIP_INDEX_URL": INDEX,
    "PIP_PROXY": PROXY,
    "UV_INDEX_URL": INDEX,
    "UV_DEFAULT_INDEX": INDEX,
}
AUTH = base64.b64encode(f"{USER}:{MARK}-registry".encode()).decode()
FILES = {
    ".docker/config.json": json.dumps(
        {
            "auths": {"registry.example": {"auth": AUTH}},
            "proxies": {"default": {"httpProxy": PROXY, "httpsProxy": PROXY, "noProxy": "localhost"}},
        }
    ),
    ".netrc": f"machine 127.0.0.1 login {USER} password {MARK}-netrc\n",
    ".config/pip/pip.conf": f"[global]\nindex-url = {INDEX}\nextra-index-url = {INDEX}\nproxy = {PROXY}\n",
    ".config/uv/uv.toml": f'[[index]]\nurl = "{INDEX}"\ndefault = true\n',
    ".pypirc": f"[pypi]\nusername = {USER}\npassword = {MARK}-pypi\n",
}
TINY = ("--preset", "tiny", "--device", "cpu", "--threads", "1", "--rounds", "1")


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder full of secrets, in an environment full of them."""
    folder = tmp_path_factory.mktemp("home")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    for name in ("PIP_FIND_LINKS", "PIP_CONFIG_FILE", "PIP_EXTRA_INDEX_URL", "UV_INDEX", "DOCKER_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.setenv("NO_PROXY", "localhost")
    return folder


def leaks(text: str) -> list[str]:
    """Return the lines of a text that have a secret, or the name that goes with one."""
    return [line[:300] for line in text.splitlines() if MARK in line or USER in line or AUTH in line]


def leaking_files(*folders: Path) -> list[str]:
    """Return the files below folders that have a secret, by name and line."""
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert paths
    return [f"{path}: {line}" for path in paths for line in leaks(path.read_bytes().decode("utf-8", "replace"))]


def content_of(path: str, pids: list[int]) -> str:
    """Return a file of /proc of processes, with line ends for its NULs."""
    texts = []
    for pid in pids:
        try:
            texts.append(Path(f"/proc/{pid}/{path}").read_bytes().replace(b"\0", b"\n").decode("utf-8", "replace"))
        except OSError:  # it has ended
            continue
    return "\n".join(texts)


@contextmanager
def watched(look: Callable[[], list[str]]) -> Iterator[set[str]]:
    """Look again and again during the block; yield what was seen."""
    seen: set[str] = set()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            seen.update(look())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def all_processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def in_command_lines() -> list[str]:
    return leaks(content_of("cmdline", all_processes()))


def measured(runner: Runner, *arguments: str) -> tuple[Any, set[str]]:
    """Run the command line to its end; return how it ended, and the secrets in command lines meanwhile."""
    with watched(in_command_lines) as seen:
        return runner(*arguments), seen


def test_the_search_sees_command_lines(runner: Runner) -> None:
    done, seen = measured(runner, "plan", "--workload", MARK)
    assert done.returncode == 2
    assert seen


@pytest.mark.slow
def test_a_run_on_the_host_keeps_secrets_to_itself(home: Path, runner: Runner) -> None:
    host = ("--backend", "host", *TINY)
    with watched(in_command_lines) as seen:
        process = runner.start("run", *host, "--rounds", "4", "--traceback")
        wait_for(lambda: len(runner.records()) >= 1)
        of_servers = content_of("environ", children(process.pid))
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert not seen
    assert "PATH=" in of_servers, "the servers and the canary were looked at"
    assert not leaks(of_servers)
    assert not leaks(out + err)
    for command in (("report",), ("check",), ("compare", "host", "host", "--format", "md"), ("list",), ("accuracy",)):
        done = runner(*command)
        assert not leaks(done.stdout + done.stderr)
    assert not leaking_files(runner.folder / "reports", home / "cache")
    page = next(runner.folder.glob("reports/runs/[!.]*/index.html")).read_text()
    assert str(home) not in page, "a report does not name the home folder"


@pytest.mark.slow
def test_a_build_that_fails_names_no_secret(home: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_TIMEOUT", "1")
    done, seen = measured(runner, "run", "--backend", "venv", *TINY, "--traceback")
    assert done.returncode == 1
    assert "image-build" in done.stderr
    assert "127.0.0.1:9" in done.stdout + done.stderr, "the reason is said"
    assert not seen
    assert not leaks(done.stdout + done.stderr)
    assert {record["class"] for record in runner.records()} == {"outage"}
    assert not leaking_files(runner.folder / "reports", home / "cache")


@pytest.mark.slow
def test_a_lock_that_fails_names_no_secret(home: Path, runner: Runner) -> None:
    text = (runner.folder / "matrix.yaml").read_text()
    requirements = 'requirements: ["numpy==2.4.6"], lock:'
    (runner.folder / "matrix.yaml").write_text(text.replace("lock:", requirements, 1))
    done, seen = measured(runner, "lock", "np-old", "--traceback")
    assert done.returncode == 1, done.stderr
    assert "Traceback" in done.stderr
    assert not seen
    assert not leaks(done.stdout + done.stderr)
    assert not leaking_files(runner.folder)
    assert home.exists()


@pytest.mark.docker
def test_containers_get_no_secret(
    runner: Runner, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, request: Any
) -> None:
    import docker

    docker_run = ("--backend", "docker", *TINY)
    built = runner("build", *docker_run[:-2])  # with the user's own configuration, which can reach an index
    assert built.returncode == 0, built.stderr
    home = request.getfixturevalue("home")
    client = docker.from_env()
    inside: list[str] = []

    def look() -> list[str]:
        for run in runner.folder.glob("reports/runs/[!.]*"):  # containers of other runs may count their processes
            look_into(run.name)
        return in_command_lines()

    def look_into(run: str) -> None:
        for container in client.containers.list(filters={"label": f"{RUN}={run}"}, ignore_removed=True):
            try:
                inside.extend(container.attrs["Config"]["Env"])
                script = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'"
                output = container.exec_run(["sh", "-c", script]).output
                inside.append(output.decode("utf-8", "replace") if isinstance(output, bytes) else "")
            except docker.errors.APIError:  # it has just ended
                continue

    with watched(look) as seen:
        done = runner("run", *docker_run[:-1], "4", "--traceback")
    client.close()
    assert done.returncode == 0, done.stderr
    assert any("PATH=" in text for text in inside)
    assert not [line for text in inside for line in leaks(text)]
    assert not seen
    assert not leaks(done.stdout + done.stderr)
    assert not leaking_files(runner.folder / "reports", home / "cache")
