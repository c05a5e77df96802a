"""Alerts through apprise to servers on loopback; an address, which holds passwords, is in nothing that others read."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from runner.watch.alerts import overview, sender, sending, targets_of_night
from runner.watch.alerts.delivery import Delivery
from runner.watch.alerts.sending import DEADLINE, Message, send
from runner.watch.alerts.targets import Receiver
from runner.watch.nightly.night_record import NightFile
from runner.watch.nightly.text import night_text
from tests.integration.conftest import Runner, children
from tests.integration.test_secrets import MARK, USER, content_of, in_command_lines, leaking_files, leaks, watched
from tests.support.nights import change, many, night, run_of
from tests.support.receivers import Received, http_server, smtp_server

MESSAGE = Message(title="torch-2.x up to 10.0 % slower", body="a cell\n  1.100 (1.090 - 1.110) <b>\n", kind="failure")
TOKEN = f"{MARK}token0000000000"[:26]


@pytest.fixture
def http() -> Iterator[Received]:
    with http_server() as received:
        yield received


@pytest.fixture
def smtp() -> Iterator[Received]:
    with smtp_server() as received:
        yield received


def mail(port: int, receiver: str = "team@example.org") -> str:
    return f"mailto://{USER}:{MARK}@127.0.0.1:{port}?smtp=127.0.0.1&from=night@example.org&to={receiver}&mode=insecure"


def targets(*addresses: str) -> list[Receiver]:
    return [Receiver(f"{number} {address.partition(':')[0]}", address) for number, address in enumerate(addresses, 1)]


def test_a_webhook_a_chat_and_a_mailbox_get_the_message(http: Received, smtp: Received) -> None:
    at = f"127.0.0.1:{http.port}"
    receivers = targets(f"json://{USER}:{MARK}@{at}/hook", f"mmost://{at}/{TOKEN}", mail(smtp.port))
    assert send(MESSAGE, receivers) == {"1 json": "", "2 mmost": "", "3 mailto": ""}
    by_path = dict(http.requests)
    hook = json.loads(by_path["/hook"])
    assert (hook["title"], hook["message"], hook["type"]) == (MESSAGE.title, MESSAGE.body.rstrip(), "failure")
    chat = json.loads(by_path[f"/hooks/{TOKEN}"])
    assert MESSAGE.title in json.dumps(chat)
    ((login, letter),) = smtp.mails
    assert base64.b64decode(login.split()[-1]).decode() == f"\0{USER}\0{MARK}"
    assert (letter["Subject"], letter["To"]) == (MESSAGE.title, "team@example.org")
    parts = [part.get_payload(decode=True) for part in letter.walk() if not part.is_multipart()]
    assert any(isinstance(part, bytes) and b"1.100 (1.090 - 1.110)" in part for part in parts)


@pytest.mark.filterwarnings("ignore")  # of apprise and what it uses; a night sends in a process of its own
def test_the_payload_for_slack_mentions_nobody_and_names_no_other_host(
    http: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apprise.plugins.slack import NotifySlack

    monkeypatch.setattr(NotifySlack, "webhook_url", f"http://127.0.0.1:{http.port}/services")
    address = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#performance"
    assert not sender.send(address, MESSAGE.title, "<!channel> 1.1\n", "failure")
    ((path, body),) = http.requests
    payload = json.loads(body)
    assert path == "/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
    assert payload["channel"] == "#performance"
    assert (payload["attachments"][0]["title"], payload["attachments"][0]["text"]) == (
        MESSAGE.title,
        "&lt;!channel&gt; 1.1",
    )
    assert "://" not in body


def test_each_receiver_that_fails_has_a_reason_and_the_others_get_the_message(
    http: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "DEADLINE", 120.0)  # eight processes import apprise at the same time
    at = f"{USER}:{MARK}@127.0.0.1:{http.port}"
    with smtp_server(refused="nobody") as refusing:
        receivers = targets(
            f"json://{at}/500/{MARK}?rto=30",
            f"json://{at}/silent/{MARK}?rto=1",
            f"jsons://{at}/{MARK}",
            f"json://{USER}:{MARK}@127.0.0.1:9/{MARK}",
            f"json://{USER}:{MARK}@host.invalid/{MARK}",
            f"nosuchservice://{USER}:{MARK}@host",
            mail(refusing.port, "nobody@example.org"),
            f"json://{at}/hook?rto=30",
        )
        outcomes = send(MESSAGE, receivers, 120.0)
    assert list(outcomes.values()) == [
        "it answered with HTTP status 500",
        "it did not answer in time",
        "the encrypted connection failed",
        "it refused the connection",
        "its host is not known",
        "apprise knows no such address: see its list of services",
        "it refused the sender or a receiver",
        "",
    ]
    assert not leaks(str(outcomes))


def test_a_receiver_that_answers_byte_after_byte_does_not_hold_up_a_night(http: Received) -> None:
    started = time.monotonic()
    address = f"json://127.0.0.1:{http.port}/slow?rto=60"
    assert send(MESSAGE, targets(address), 4.0) == {"1 json": "it did not answer in time"}
    assert time.monotonic() - started < 40


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl makes a certificate")
def test_a_certificate_that_nobody_signed_is_refused(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=127.0.0.1")
    files = ("-keyout", str(key), "-out", str(certificate), "-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run(["openssl", *made, *files], check=True, capture_output=True)
    with http_server((certificate, key)) as received:
        address = f"jsons://{USER}:{MARK}@127.0.0.1:{received.port}/hook"
        assert send(MESSAGE, targets(address)) == {"1 jsons": "its certificate is not valid"}
        assert send(MESSAGE, targets(f"{address}?verify=no")) == {"1 jsons": ""}
    assert [path for path, _ in received.requests] == ["/hook"]


def test_no_secret_is_in_what_a_test_of_alerts_prints_starts_or_writes(
    http: Received,
    smtp: Received,
    runner: Runner,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    at = f"{USER}:{MARK}@127.0.0.1:{http.port}"
    lines = [
        "# who gets alerts",
        f"json://{at}/hook/{MARK}?+X-Token={MARK}",
        f"json://{at}/500/{MARK}?rto=30",
        "",
        mail(smtp.port),
    ]
    path = home / ".config/matrix-runner/alerts"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines))
    path.chmod(0o644)
    refused = runner("alerts", "--test", "--traceback")
    assert refused.returncode == 2
    assert (
        f"its mode is 0644, so that others may use it\nhint: it holds passwords: `chmod 600 {path}`" in refused.stderr
    )
    path.chmod(0o600)
    seen: list[str] = []
    with watched(lambda: [*in_command_lines(), *leaks(content_of("environ", children(os.getpid())))]) as in_processes:
        done = runner("alerts", "--test", "--traceback")
    seen += in_processes
    assert done.stdout.splitlines() == [
        "1 json: delivered",
        "2 json: it answered with HTTP status 500",
        "3 mailto: delivered",
    ]
    assert done.returncode == 1
    assert not seen
    assert not leaks(done.stdout + done.stderr + refused.stdout + refused.stderr)
    assert (len(http.requests), len(smtp.mails)) == (2, 1)
    monkeypatch.setenv("MATRIX_RUNNER_ALERTS", f"json://{at}/hook {MARK}-is-no-address")
    mistaken = runner("alerts", "--test", "--traceback")
    assert mistaken.returncode == 2
    assert "address 2 of the variable MATRIX_RUNNER_ALERTS is no address for alerts" in mistaken.stderr
    assert not leaks(mistaken.stdout + mistaken.stderr)
    path.unlink()
    assert not leaking_files(home, runner.folder)


def test_a_night_delivers_and_stores_no_address(http: Received, tmp_path: Path) -> None:
    at = f"{USER}:{MARK}@127.0.0.1:{http.port}"
    addresses = [f"json://{at}/hook/{MARK}", f"json://{at}/500/{MARK}"]
    environ = {"MATRIX_RUNNER_ALERTS": " ".join(addresses), "XDG_STATE_HOME": str(tmp_path / "state")}
    notes: list[str] = []
    receivers = targets_of_night(environ, notes.append)
    assert "MATRIX_RUNNER_ALERTS" not in environ, "no process of the night gets it"
    reports = tmp_path / "reports"
    cells = many(3)
    tonight = night(1, [change(of, run_of(1)) for of in cells], cells)
    file = NightFile(tonight, reports)
    delivery = Delivery(reports=reports, write=file.write, targets=receivers, note=notes.append)
    tonight = delivery.of(tonight, frozenset(tonight.seconds), {})
    assert json.loads(http.requests[0][1])["title"] == "torch-2.x up to 10 % slower: 3 tests, on NVIDIA H200"
    assert [*tonight.alerts[0].targets.values()] == ["", "it answered with HTTP status 500"]
    assert all(re.fullmatch("json [0-9a-f]{12}", name) for name in tonight.alerts[0].targets)
    hashes = [hashlib.sha256(address.encode()).hexdigest()[:8] for address in addresses]
    assert not any(digits in (reports / "nights" / f"{tonight.run}.json").read_text() for digits in hashes)
    assert not leaking_files(reports)
    assert not leaks("\n".join([*notes, night_text(tonight), repr(receivers), overview.overview(reports).text()]))


def test_a_receiver_that_answers_without_an_end_takes_no_memory(http: Received) -> None:
    """Alone, its answer would fill the memory of the machine that measures: 6 GB in 16 s."""
    largest = 0
    done = threading.Event()

    def watch() -> None:
        nonlocal largest
        while not done.wait(0.02):
            for pid in children(os.getpid()):
                with suppress(OSError, IndexError):
                    text = Path(f"/proc/{pid}/status").read_text()
                    if sender.__file__ in Path(f"/proc/{pid}/cmdline").read_text():
                        largest = max(largest, int(text.partition("VmHWM:")[2].split()[0]) * 1024)

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.monotonic()
    try:
        reasons = send(MESSAGE, targets(f"json://127.0.0.1:{http.port}/endless", f"json://127.0.0.1:{http.port}/hook"))
    finally:
        done.set()
        watcher.join()
    assert reasons.pop("1 json") in {sender.TOO_LONG, sender.TOO_SLOW}  # the latter on a loaded machine
    assert reasons == {"2 json": ""}
    assert 10_000_000 < largest < sender.MAX_BYTES
    assert time.monotonic() - begin < 3 * DEADLINE
