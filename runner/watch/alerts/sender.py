"""A program of its own that sends a message to a receiver through apprise.

It reads ``{"address", "title", "body", "kind"}`` from stdin and writes ``{"delivered", "reason"}`` to stdout. A process
can be ended at a deadline, and what apprise and its services log, print or raise ends in it: their texts may hold the
address, so a reason is one of the sentences below. The program imports nothing of the runner: it starts
quickly.
"""

import json
import logging
import os
import re
import resource
import sys

NO_ADDRESS = "apprise knows no such address: see its list of services"
NO_APPRISE = "apprise is not installed: `pip install 'matrix-runner[alerts]'`"
TOO_SLOW = "it did not answer in time"
TOO_LONG = "its answer was too long"
MAX_BYTES = 512 << 20
"""The memory of the program: a receiver could answer without end. An ordinary message takes 205 MB, mostly code."""
UNKNOWN = "the service did not accept it, and gave no reason that can be shown"

_STATUS = re.compile(r"\berror=([1-5]\d\d)\b")
_SENTENCES = tuple(
    (re.compile(pattern, re.IGNORECASE), sentence)
    for pattern, sentence in (
        (r"MemoryError", TOO_LONG),
        (r"certificate", "its certificate is not valid"),
        (r"WRONG_VERSION_NUMBER|SSLError|SSLEOF|\bTLS\b|starttls", "the encrypted connection failed"),
        (r"SMTPAuthentication|\(535\b|\b535\b", "it refused the user or the password"),
        (r"SMTPRecipientsRefused|SMTPSenderRefused|\b55[0-4]\b", "it refused the sender or a receiver"),
        (r"timed out|timeout", TOO_SLOW),
        (r"refused", "it refused the connection"),
        (r"name or service not known|name resolution|getaddrinfo|nodename", "its host is not known"),
        (r"unreachable|no route", "its network cannot be reached"),
        (r"reset by peer|RemoteDisconnected|closed|aborted", "it closed the connection"),
    )
)


def reason_of(text: str) -> str:
    """Return a sentence for what was logged and raised; nothing of the text is in it but an HTTP status.

    >>> reason_of("Failed to send JSON POST notification: Internal Server Error., error=500.")
    'it answered with HTTP status 500'
    """
    status = _STATUS.search(text)
    if status:
        return f"it answered with HTTP status {status[1]}"
    return next((sentence for pattern, sentence in _SENTENCES if pattern.search(text)), UNKNOWN)


class _Kept(logging.Handler):
    """Keeps what apprise logs, for ``reason_of``."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        if isinstance(sys.exc_info()[1], MemoryError):  # apprise logs its text, which is empty
            self.texts.append("MemoryError")


def send(address: str, title: str, body: str, kind: str) -> str:
    """Send a message; return why it was not delivered, empty if it was.

    Args:
        address: of apprise.
        title: a line.
        body: plain text.
        kind: ``info``, ``success``, ``warning`` or ``failure``.
    """
    import apprise

    log = _Kept()
    logging.getLogger("apprise").addHandler(log)
    logging.getLogger("apprise").setLevel(logging.DEBUG)
    asset = apprise.AppriseAsset(app_id="matrix-runner", app_desc="matrix-runner", async_mode=False)
    asset.image_url_mask = asset.image_url_logo = ""  # readers would fetch pictures from a host of apprise
    try:
        service = apprise.Apprise.instantiate(address, asset=asset, suppress_exceptions=True)
        if not isinstance(service, apprise.NotifyBase):
            return NO_ADDRESS
        if service.overflow_mode == apprise.OverflowMode.UPSTREAM:  # an alert is one message
            service.overflow_mode = apprise.OverflowMode.TRUNCATE
        receivers = apprise.Apprise(service, asset=asset)
        if receivers.notify(body=body, title=title, notify_type=kind, body_format=apprise.NotifyFormat.TEXT):
            return ""
    except MemoryError:
        return TOO_LONG
    except Exception as error:  # noqa: BLE001  a service may raise anything
        log.texts.append(f"{type(error).__name__} {error}")
    return reason_of("\n".join(log.texts))


def main() -> None:
    """Send what stdin has; whatever a service prints is dropped."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    answer = os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    reason = send(**json.load(sys.stdin))
    with answer:
        json.dump({"delivered": not reason, "reason": reason}, answer)


if __name__ == "__main__":
    main()
