"""What travels between driver and workers is checked where it arrives."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from runner.backends.venv import VenvBackend
from runner.core.errors import RecordError, UsageError
from runner.core.progress import Progress
from runner.hosts import project, run_on_hosts, tasks, work
from runner.hosts.executors.addresses import connect
from runner.hosts.executors.dask import scheduler_address
from runner.hosts.executors.slurm import SlurmExecutor
from runner.hosts.tasks import Inquiry
from runner.hosts.work import perform_guarded
from runner.releases import release_files, release_locks
from runner.releases.lock_requests import LockRequest
from runner.session.named_releases import with_named_releases
from runner.session.options import Options
from tests.support.fake_hosts import FakeHosts
from tests.unit.releases.test_named import listed

MATRIX = """
version: 1
environments:
  np: {framework: numpy, release: "2.*", python: "3.11", lock: docker/locks/np.txt, requirements: [numpy]}
workloads: {rnn-step: {}}
"""


def test_a_task_returns_as_it_was_sent() -> None:
    inquiry = Inquiry(project=b"\x00zip", options={"preset": "quick"}, token="ab" * 16)
    assert tasks.decode(tasks.encode(inquiry)) == inquiry


def test_another_version_of_the_measuring_code_is_refused() -> None:
    sent = json.loads(tasks.encode(Inquiry(project=b"", options={}, token="")))
    with pytest.raises(RecordError, match="driver and worker differ in their harness: 'old'"):
        tasks.decode(json.dumps({**sent, "harness": "old"}).encode())


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"version": 1}'])
def test_a_damaged_task_is_an_error_of_its_own(content: bytes) -> None:
    with pytest.raises(RecordError):
        tasks.decode(content)


def test_a_worker_of_another_version_refuses_the_task_that_it_was_given() -> None:
    inquiry = Inquiry(project=b"", options={}, token="ab" * 16)
    task = tasks.encode(inquiry).replace(b'"program": "', b'"program": "another ')
    answer = perform_guarded(task, "cpu")
    assert tasks.token_of(answer) == inquiry.token
    with pytest.raises(RecordError, match="driver and worker differ in their program"):
        tasks.payload(answer)


def test_a_reply_without_a_token_is_no_result() -> None:
    with pytest.raises(RecordError, match="belongs to no task"):
        tasks.payload(tasks.reply(b"records", ""))


def test_a_refusal_is_the_reason_of_the_worker() -> None:
    reply = tasks.refusal("the disk is\x1b full", "cd" * 16)
    assert tasks.token_of(reply) == "cd" * 16
    with pytest.raises(RecordError, match=r"the disk is.* full") as error:
        tasks.payload(reply)
    assert "\x1b" not in str(error.value)


def test_the_options_arrive_with_the_files_and_the_device_of_the_other_host(tmp_path: Path) -> None:
    options = Options(selectors=["np"], preset="quick", backend="venv", device="cuda:0", reports=Path("mine"))
    received = tasks.received_options(tasks.sent_options(options), tmp_path / "matrix.yaml", tmp_path, "cpu")
    assert received == Options(
        selectors=["np"],
        preset="quick",
        backend="venv",
        device="cpu",
        matrix=tmp_path / "matrix.yaml",
        reports=tmp_path,
    )
    with pytest.raises(RecordError, match="unknown options: evil"):
        tasks.received_options({"evil": 1}, tmp_path, tmp_path, "cpu")


def test_an_option_that_names_a_file_of_this_host_is_refused() -> None:
    with pytest.raises(UsageError, match="--python names a file of this host"):
        tasks.sent_options(Options(python="/usr/bin/python3"))
    for word in ("python:/opt/a/bin/python", "image:team/net:1"):
        with pytest.raises(UsageError, match=f"{word} is of this host"):
            tasks.sent_options(Options(selectors=["np", f"!x={word}@env:A=1"]))


def test_the_files_of_a_matrix_arrive_as_they_are(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "docker" / "locks").mkdir(parents=True)
    there.mkdir()
    (here / "matrix.yaml").write_text(MATRIX)
    (here / "docker" / "Dockerfile.numpy").write_text("FROM scratch\n")
    (here / "docker" / "locks" / "np.txt").write_text("numpy==2.0 --hash=sha256:00\n")
    (here / "secret.txt").write_text("not sent")
    assert project.unpack(project.pack(here / "matrix.yaml"), there) == there / "matrix.yaml"
    sent = {str(path.relative_to(there)): path.read_text() for path in there.rglob("*") if path.is_file()}
    assert sent.keys() == {"matrix.yaml", "docker/Dockerfile.numpy", "docker/locks/np.txt"}
    assert sent["matrix.yaml"] == MATRIX
    assert project.pack(here / "matrix.yaml") == project.pack(here / "matrix.yaml")


def test_the_locks_of_named_releases_arrive_and_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker asks no index, and has the lock of the driver although it keeps another one."""
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    made: list[str] = []

    def lock_of_its_time(request: LockRequest) -> Iterator[str]:
        made.append(request.name)
        request.out.write_text(f"numpy==1.26.4 --hash=sha256:{len(made):064x}\n")
        yield from ()

    monkeypatch.setattr(release_files, "files_of", lambda *_: [])
    monkeypatch.setattr(release_locks, "lock_of_its_time", lock_of_its_time)
    monkeypatch.setattr(run_on_hosts, "with_named_releases", partial(with_named_releases, versions=listed))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "driver"))
    options = Options(selectors=["numpy==1.26.4"], backend="venv", matrix=tmp_path / "matrix.yaml", upgrade=True)
    packed = run_on_hosts.packed(options, FakeHosts({}, tmp_path), Progress(lambda _: None))
    assert made == ["numpy-1.26.4"] * 2  # no device is there yet: for a CPU, and for a GPU

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "worker"))
    sent = tasks.sent_options(options)
    task = Inquiry(project=packed, options=sent, token="ab" * 16)
    context = work.context_of(task, "cpu", tmp_path / "unpacked", tmp_path)
    assert isinstance(context.backend, VenvBackend)
    (lock,) = context.settings.locks.values()
    assert lock.parent == tmp_path / "unpacked" / "releases"
    assert len(made) == 2


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../out"])
def test_files_that_lead_out_of_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    import io
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, "x")
    (tmp_path / "in").mkdir()
    with pytest.raises(RecordError, match="leads out of the folder"):
        project.unpack(out.getvalue(), tmp_path / "in")
    assert list(tmp_path.iterdir()) == [tmp_path / "in"]


def test_a_scheduler_outside_loopback_needs_tls(tmp_path: Path) -> None:
    assert scheduler_address("127.0.0.1:8786", None) == "tcp://127.0.0.1:8786"
    assert scheduler_address("gpu-1:8786", tmp_path) == "tls://gpu-1:8786"
    with pytest.raises(UsageError, match="without TLS anyone on the network could run code here"):
        scheduler_address("gpu-1:8786", None)
    with pytest.raises(UsageError, match="is not an address"):
        scheduler_address("gpu-1", None)


def test_an_unknown_executor_is_an_error_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no executor 'ray://head'"):
        connect("ray://head", None, tmp_path)
    with pytest.raises(UsageError, match="is not an address"):
        SlurmExecutor("gpu?speed=9", tmp_path)
