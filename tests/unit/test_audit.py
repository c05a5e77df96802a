"""The audit of the dependencies is skipped where no service can be reached, and for no other failure."""

import json
import subprocess
from collections.abc import Sequence

import pytest

from tests.audit import SERVICES, audit

TIMED_OUT = """\
ERROR:pip_audit._cli:Could not connect to {}'s vulnerability feed
ERROR:pip_audit._cli:Tip: your network may be blocking this service. Try another service with `-s SERVICE`
"""
TRACEBACK = "Traceback (most recent call last):\n  File ...\nrequests.exceptions.{}: Max retries exceeded\n"
CLEAN = json.dumps({"dependencies": [{"name": "numpy", "version": "2.4.6", "vulns": []}], "fixes": []})
VULNERABLE = json.dumps(
    {"dependencies": [{"name": "six", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}]}
)
UNKNOWN = json.dumps({"dependencies": [{"name": "numpy", "skip_reason": "Dependency not found on PyPI"}], "fixes": []})


def outcome(*answers: tuple[int, str, str]) -> tuple[int, str, list[str]]:
    """Return exit status, output and the services that were asked; each answers with a status, stdout and stderr."""
    commands: list[list[str]] = []
    output: list[str] = []

    def run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        commands.append(list(command))
        code, stdout, stderr = answers[len(commands) - 1]
        return subprocess.CompletedProcess(command, code, stdout, stderr)

    code = audit(["--strict"], run, output.append)
    assert all(command[-1] == "--strict" for command in commands)
    return code, "".join(output), [command[-2] for command in commands]


def test_no_vulnerability_passes() -> None:
    assert outcome((0, CLEAN, "")) == (0, "1 packages audited with pypi, 0 vulnerabilities\n", ["pypi"])


def test_a_vulnerability_fails_and_is_named() -> None:
    code, output, services = outcome((1, VULNERABLE, "Found 1 known vulnerability in 1 package\n"))
    assert (code, services) == (1, ["pypi"])
    assert output.startswith("six 1.0: PYSEC-1, fixed in 1.1\n")


@pytest.mark.parametrize(
    "stderr",
    [
        TIMED_OUT.format("PyPI"),
        *(TRACEBACK.format(name) for name in ("ConnectionError", "ConnectTimeout", "ProxyError")),
    ],
)
def test_where_no_service_can_be_reached_the_audit_is_skipped_with_a_sentence(stderr: str) -> None:
    code, output, services = outcome((1, "", stderr), (1, "", TIMED_OUT.format("OSV")))
    assert (code, services) == (0, list(SERVICES))
    assert output.startswith("skipped: no advisory service answers")


def test_the_second_service_counts_where_the_first_does_not_answer() -> None:
    for first in ((1, "", TIMED_OUT.format("PyPI")), (0, UNKNOWN, "")):
        code, output, services = outcome(first, (1, VULNERABLE, ""))
        assert (code, services) == (1, list(SERVICES))
        assert "PYSEC-1" in output


@pytest.mark.parametrize(
    "stderr",
    [
        "Traceback (most recent call last):\npip_audit._service.interface.ServiceError\n",
        TRACEBACK.format("ConnectionError") + "Traceback (most recent call last):\nTypeError: x\n",
        TRACEBACK.format("HTTPError"),
        "ERROR:pip_audit._cli:numpy: could not connect to anything\n",
        "/bin/python: No module named pip_audit\n",
        "",
    ],
)
def test_any_other_failure_fails(stderr: str) -> None:
    assert outcome((1, "", stderr)) == (1, stderr, ["pypi"])
