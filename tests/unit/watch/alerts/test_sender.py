"""Why a message was not delivered: a sentence of ours, never a text of a service."""

import pytest

from runner.watch.alerts.sender import UNKNOWN, reason_of

SECRET = "n0bodymayread"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Failed to send JSON POST notification: Forbidden., error=403.", "it answered with HTTP status 403"),
        (f"Socket Exception: [Errno 111] Connection refused to {SECRET}", "it refused the connection"),
        ("SSLError(SSLCertVerificationError(1, 'certificate verify failed'))", "its certificate is not valid"),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number", "the encrypted connection failed"),
        ("(535, b'5.7.8 Authentication failed')", "it refused the user or the password"),
        (f"SMTPRecipientsRefused: {SECRET}", "it refused the sender or a receiver"),
        ("Read timed out. (read timeout=4.0)", "it did not answer in time"),
        ("[Errno -2] Name or service not known", "its host is not known"),
        (f"token {SECRET} is not valid", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_a_text_of_a_service_only_chooses_a_sentence(text: str, reason: str) -> None:
    assert reason_of(text) == reason
    assert SECRET not in reason_of(text)
