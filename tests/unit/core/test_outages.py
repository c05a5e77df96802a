"""What uv and pip say of an outage, and what they say of what lasts."""

import errno

import pytest

from runner.core.outages import is_outage, is_passing_error

EXHAUSTED = "HTTPConnectionPool(host='h', port=1): Max retries exceeded with url: /a.whl (Caused by ResponseError('x'))"


@pytest.mark.parametrize(
    "line",
    [
        "  cause: HTTP status server error (503 Service Unavailable) for url (http://127.0.0.1/simple/numpy/)",
        "  cause: HTTP status client error (429 Too Many Requests) for url (http://127.0.0.1/simple/numpy/)",
        "  cause: failed to lookup address information: Name or service not known",
        "  cause: failed to write to file `/c/x.py`: No space left on device (os error 28)",
        f"ERROR: Could not install packages due to an OSError: {EXHAUSTED}",
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
    ],
)
def test_what_uv_and_pip_say_of_an_outage(line: str) -> None:
    assert is_outage(f"error: Failed to fetch\n{line}\n")


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError: Connection refused'",
        "  cause: Because numpy was not found in the package registry, we can conclude ...",
        "ERROR: Could not install requirement made==1.0 because of HTTP error 404 Client Error: Not Found for url: x",
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
        "error: subprocess-exited-with-error",
    ],
)
def test_what_lasts_is_no_outage(line: str) -> None:
    assert not is_outage(f"{line}\n")


def test_a_full_disk_passes_and_a_missing_file_does_not() -> None:
    assert is_passing_error(OSError(errno.ENOSPC, "full"))
    assert not is_passing_error(FileNotFoundError(errno.ENOENT, "gone"))
