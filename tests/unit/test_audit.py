"""The audit of the dependencies passes unheard where no service can be reached, and for no other failure."""

import subprocess
from collections.abc import Sequence

import pytest

from tests.audit import SERVICES, audit

UNREACHABLE = """\
ERROR:pip_audit._cli:Could not connect to {}'s vulnerability feed
ERROR:pip_audit._cli:Tip: your network may be blocking this service. Try another service with `-s SERVICE`
"""
VULNERABLE = "Found 1 known vulnerability in 1 package\n"


def outcome(*answers: tuple[int, str]) -> tuple[int, str, list[str]]:
    """Return exit status, output and the services that were asked, where each answers with a status and a stderr."""
    commands: list[list[str]] = []
    output: list[str] = []

    def run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        commands.append(list(command))
        code, stderr = answers[len(commands) - 1]
        return subprocess.CompletedProcess(command, code, "", stderr)

    code = audit(["--strict"], run, output.append)
    assert all(command[-1] == "--strict" for command in commands)
    return code, "".join(output), [command[-2] for command in commands]


def test_no_vulnerability_passes() -> None:
    assert outcome((0, "No known vulnerabilities found\n")) == (0, "No known vulnerabilities found\n", ["pypi"])


def test_a_vulnerability_fails() -> None:
    assert outcome((1, VULNERABLE)) == (1, VULNERABLE, ["pypi"])


def test_where_no_service_can_be_reached_the_audit_is_skipped_with_a_sentence() -> None:
    code, output, services = outcome((1, UNREACHABLE.format("PyPI")), (1, UNREACHABLE.format("OSV")))
    assert (code, services) == (0, list(SERVICES))
    assert output.startswith("skipped: no advisory service answers")


def test_the_second_service_counts_where_the_first_cannot_be_reached() -> None:
    assert outcome((1, UNREACHABLE.format("PyPI")), (1, VULNERABLE)) == (1, VULNERABLE, list(SERVICES))


@pytest.mark.parametrize(
    "stderr",
    [
        "Traceback (most recent call last):\npip_audit._service.interface.ServiceError\n",
        "ERROR:pip_audit._cli:numpy: could not connect to anything\n",
        "/bin/python: No module named pip_audit\n",
        VULNERABLE + "a description: Could not connect to the vulnerability feed\n",
        "",
    ],
)
def test_any_other_failure_fails(stderr: str) -> None:
    assert outcome((1, stderr)) == (1, stderr, ["pypi"])
